# METADATA
# title: Pricing rules
# description: >-
#   `allow_pricing` and `deny_pricing`. An allow rule matches when every condition it states holds, a deny rule when its
#   type matches or a maximum is exceeded. An unknown price satisfies no maximum of an allow rule and exceeds every
#   maximum of a deny rule; equal to the maximum passes. Skipped for moderations.
# schemas:
#   - input: schema.input
package gateway.iam.pricing

import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of pricing rules
violations := array.concat(_denied, _not_allowed)

_denied := [{"mode": applied.mode, "violation": found} |
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.deny_pricing
	some offer in _offers
	matches := {[tripped, rule] | some rule, condition in rules.conditions; some tripped in _tripped(condition, offer)}
	matches != set()
	found := violation.of(offer.candidate, violation.denied(applied, "pricing", matches))
]

_not_allowed := [{"mode": applied.mode, "violation": found} |
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.allow_pricing
	some offer in _offers
	not _allowed(rules, offer)
	found := violation.of(offer.candidate, violation.not_allowed(applied, "pricing", rules.rules, _offered(offer)))
]

# METADATA
# title: Matching allow rules
# description: The allow rules that match a candidate, report rules included.
allowing contains {"candidate": offer.candidate, "rule": rule} if {
	input.action != "moderation"
	some applied in scopes.shadow
	some offer in _offers
	some rule, condition in applied.rules.allow_pricing.conditions
	_holds(condition, offer)
}

# What each candidate offers; an unknown price, or one that is no number, is an empty list.
_offers := [{"candidate": candidate.id, "type": _type(candidate.free), "input": input_price, "output": output_price} |
	some candidate in input.candidates
	input_price := [price | price := candidate.input_price; is_number(price)]
	output_price := [price | price := candidate.output_price; is_number(price)]
]

_type(true) := "free"

_type(false) := "paid"

_allowed(rules, offer) if {
	some condition in rules.conditions
	_holds(condition, offer)
}

_holds(condition, offer) if {
	object.get(condition, "pricing_type", offer.type) == offer.type
	_within(condition, "max_input_price", offer.input)
	_within(condition, "max_output_price", offer.output)
}

# Written so that what cannot be compared is not within.
_within(condition, maximum, _) if not condition[maximum]

_within(condition, maximum, prices) if prices[0] <= condition[maximum]

_tripped(condition, offer) := array.concat(
	[concat("", ["pricingType=", offer.type]) | condition.pricing_type == offer.type],
	array.concat(
		_exceeded(condition, "max_input_price", {"maximum": "maxInputPrice=", "price": "inputPrice="}, offer.input),
		_exceeded(condition, "max_output_price", {"maximum": "maxOutputPrice=", "price": "outputPrice="}, offer.output),
	),
)

_exceeded(condition, maximum, labels, prices) := [_reason(condition[maximum], labels, prices) |
	not _within(condition, maximum, prices)
]

# A price that is unknown is the reason itself: nobody knows that it lies above the maximum.
_reason(_, labels, []) := concat("", [labels.price, _price([])])

_reason(maximum, labels, [_]) := concat("", [labels.maximum, json.marshal(maximum)])

_offered(offer) := [
	concat("", ["pricingType=", offer.type]),
	concat("", ["inputPrice=", _price(offer.input)]),
	concat("", ["outputPrice=", _price(offer.output)]),
]

# `format_int` aborts in WASM above 32 bits.
_price([]) := "unknown"

_price([price]) := json.marshal(price)
