package gateway.iam.pricing_test

import data.gateway.iam.pricing

candidates := {
	"paid": {"free": false, "input_price": 2000000, "output_price": 8000000},
	"dear": {"free": false, "input_price": 8999999999998, "output_price": 9000000000000},
	"free": {"free": true, "input_price": 0, "output_price": 0},
	"unknown": {"free": false},
	"flagged free": {"free": true},
	"malformed": {"free": false, "input_price": null, "output_price": "1"},
}

call(action, name) := {
	"action": action,
	"client_ip": null,
	"subjects": [{"scope": "organization", "id": "org_1"}],
	"candidates": [object.union({"id": "c", "names": ["c"], "provider_names": ["p"]}, candidates[name])],
}

rules(condition) := {"rules": ["rule_1"], "conditions": {"rule_1": condition}}

violations(action, name, set_of_rules) := result if {
	result := [found.violation | some found in pricing.violations]
		with input as call(action, name)
		with data.subjects as {"org_1": {"enforce": set_of_rules}}
}

denied(values) := {
	"scope": "organization",
	"kind": "pricing",
	"effect": "deny",
	"candidate": "c",
	"ruleIds": ["rule_1"],
	"values": values,
}

not_allowed(values) := object.union(denied(values), {"effect": "allow"})

both(input_price, output_price) := {"max_input_price": input_price, "max_output_price": output_price}

deny_cases := {
	"type": {"candidate": "paid", "when": {"pricing_type": "paid"}, "trips": ["pricingType=paid"]},
	"other type": {"candidate": "paid", "when": {"pricing_type": "free"}, "trips": []},
	"flag sets the type": {"candidate": "flagged free", "when": {"pricing_type": "free"}, "trips": ["pricingType=free"]},
	"equal to the maxima": {"candidate": "paid", "when": both(2000000, 8000000), "trips": []},
	"one above": {"candidate": "paid", "when": both(1999999, 8000000), "trips": ["maxInputPrice=1999999"]},
	"output above": {"candidate": "paid", "when": {"max_output_price": 7999999}, "trips": ["maxOutputPrice=7999999"]},
	"nothing": {"candidate": "free", "when": both(0, 0), "trips": []},
	"above nothing": {"candidate": "paid", "when": both(0, 0), "trips": ["maxInputPrice=0", "maxOutputPrice=0"]},
	"unknown": {"candidate": "unknown", "when": both(9, 9), "trips": ["inputPrice=unknown", "outputPrice=unknown"]},
	"malformed": {"candidate": "malformed", "when": both(9, 9), "trips": ["inputPrice=unknown", "outputPrice=unknown"]},
	"flag is no price": {"candidate": "flagged free", "when": {"max_input_price": 9}, "trips": ["inputPrice=unknown"]},
	"large numbers": {
		"candidate": "dear",
		"when": both(8999999999997, 9000000000000),
		"trips": ["maxInputPrice=8999999999997"],
	},
	"type and maximum": {
		"candidate": "paid",
		"when": {"pricing_type": "paid", "max_input_price": 1},
		"trips": ["maxInputPrice=1", "pricingType=paid"],
	},
}

test_deny[note] if {
	some note, tc in deny_cases
	want := [denied(tc.trips) | tc.trips != []]
	violations("chat", tc.candidate, {"deny_pricing": rules(tc.when)}) == want
}

allow_cases := {
	"type": {"candidate": "paid", "when": {"pricing_type": "paid"}, "holds": true},
	"other type": {"candidate": "paid", "when": {"pricing_type": "free"}, "holds": false},
	"equal to the maxima": {"candidate": "paid", "when": both(2000000, 8000000), "holds": true},
	"one condition fails": {"candidate": "paid", "when": both(2000000, 7999999), "holds": false},
	"type holds and maximum does not": {
		"candidate": "paid",
		"when": {"pricing_type": "paid", "max_input_price": 1},
		"holds": false,
	},
	"unknown price": {"candidate": "unknown", "when": {"max_input_price": 9000000000000}, "holds": false},
	"malformed price": {"candidate": "malformed", "when": {"max_input_price": 9000000000000}, "holds": false},
	"flagged free, price unknown": {"candidate": "flagged free", "when": {"pricing_type": "free"}, "holds": true},
}

test_allow[note] if {
	some note, tc in allow_cases
	violations("image", tc.candidate, {"allow_pricing": rules(tc.when)}) == [] == tc.holds
}

test_not_allowed_says_what_was_offered if {
	rule := {"allow_pricing": rules({"pricing_type": "free"})}
	violations("chat", "dear", rule) == [not_allowed([
		"inputPrice=8999999999998",
		"outputPrice=9000000000000",
		"pricingType=paid",
	])]
	violations("chat", "unknown", rule) == [not_allowed([
		"inputPrice=unknown",
		"outputPrice=unknown",
		"pricingType=paid",
	])]
}

test_allow_rules_are_a_union if {
	conditions := {"rule_1": {"pricing_type": "free"}, "rule_2": {"max_input_price": 2000000}}
	violations("chat", "paid", {"allow_pricing": {"rules": ["rule_1", "rule_2"], "conditions": conditions}}) == []
}

test_moderation_skips_pricing_rules if {
	set_of_rules := {
		"deny_pricing": rules({"pricing_type": "paid"}),
		"allow_pricing": rules({"pricing_type": "free"}),
	}
	violations("moderation", "paid", set_of_rules) == []
}

allowing(action) := result if {
	result := pricing.allowing with input as call(action, "paid")
		with data.subjects as {"org_1": {"enforce": {}, "shadow": {"allow_pricing": rules({"pricing_type": "paid"})}}}
}

test_allowing_names_the_matching_allow_rules if {
	allowing("chat") == {{"candidate": "c", "rule": "rule_1"}}
	allowing("moderation") == set()
}
