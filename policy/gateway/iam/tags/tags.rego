# METADATA
# title: Tag rules
# description: >-
#   `allow_tags` and `deny_tags`. An entry equals one of the candidate's tags, or is a prefix of one (`region:*`). What is
#   not known of a candidate is no tag of it: it satisfies no allow rule and trips no deny rule. Moderations obey them
#   too: they protect what is sent, whatever model it is sent to.
# schemas:
#   - input: schema.input
package gateway.iam.tags

import data.gateway.lib.entries
import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of tag rules
violations := array.concat(_denied, _not_allowed)

_denied := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.deny_tags
	some offer in _offers
	entries.covers(rules, offer.tags)
	denied := violation.denied(applied, "tags", entries.covered(rules, offer.tags))
	found := violation.of(offer.candidate, denied)
]

_not_allowed := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.allow_tags
	some offer in _offers
	not entries.covers(rules, offer.tags)
	found := violation.of(offer.candidate, violation.not_allowed(applied, "tags", rules.rules, _shown(offer.tags)))
]

# METADATA
# title: Matching allow rules
# description: The allow rules that match a candidate, report rules included.
allowing contains {"candidate": offer.candidate, "rule": rule} if {
	some applied in scopes.shadow
	rules := applied.rules.allow_tags
	some offer in _offers
	some [_, rule] in entries.covered(rules, offer.tags)
}

# Each candidate's tags; an empty list where it has none.
_offers := [{"candidate": candidate.id, "tags": tags} |
	some candidate in input.candidates
	tags := [tag | some tag in candidate.tags]
]

_shown([]) := ["tags=unknown"]

_shown(tags) := tags if count(tags) > 0
