package gateway.iam.tags_test

import data.gateway.iam.tags

candidate := {
	"id": "acme/gpt-x",
	"names": ["gpt-x", "acme/gpt-x"],
	"provider_names": ["acme"],
	"free": false,
	"tags": ["no_training", "region:eu", "stability:stable"],
}

untagged := object.remove(candidate, ["tags"])

call(action, offered) := {
	"action": action,
	"client_ip": null,
	"subjects": [{"scope": "key", "id": "key_1"}],
	"candidates": [offered],
}

rules(exact, prefixes) := {
	"rules": ["rule_1", "rule_2"],
	"exact": {tag: ["rule_1"] | some tag in exact},
	"prefixes": {concat("", [prefix, "*"]): {"prefix": prefix, "rules": ["rule_2"]} | some prefix in prefixes},
}

violations(action, offered, set_of_rules) := result if {
	result := [found.violation | some found in tags.violations]
		with input as call(action, offered)
		with data.subjects as {"key_1": {"enforce": set_of_rules}}
}

denied(values, rule_ids) := [{
	"scope": "key",
	"kind": "tags",
	"effect": "deny",
	"candidate": "acme/gpt-x",
	"ruleIds": rule_ids,
	"values": values,
}]

not_allowed(values) := [{
	"scope": "key",
	"kind": "tags",
	"effect": "allow",
	"candidate": "acme/gpt-x",
	"ruleIds": ["rule_1", "rule_2"],
	"values": values,
}]

cases := {
	"whole tag": {"exact": ["region:eu", "region:us"], "prefixes": [], "want": denied(["region:eu"], ["rule_1"])},
	"prefix": {"exact": [], "prefixes": ["region:"], "want": denied(["region:*"], ["rule_2"])},
	"the star alone": {"exact": [], "prefixes": [""], "want": denied(["*"], ["rule_2"])},
	"both forms": {
		"exact": ["no_training"],
		"prefixes": ["no_"],
		"want": denied(["no_*", "no_training"], ["rule_1", "rule_2"]),
	},
	"another value": {"exact": ["region:us"], "prefixes": ["region:e-"], "want": []},
	"part of a tag": {"exact": ["region", "eu", "region:"], "prefixes": ["egion"], "want": []},
}

test_deny[note] if {
	some note, tc in cases
	violations("chat", candidate, {"deny_tags": rules(tc.exact, tc.prefixes)}) == tc.want
}

test_allow[note] if {
	some note, tc in cases
	want := [violation | tc.want == []; some violation in not_allowed(candidate.tags)]
	violations("chat", candidate, {"allow_tags": rules(tc.exact, tc.prefixes)}) == want
}

test_no_tags_satisfy_no_allow_rule if {
	violations("chat", untagged, {"allow_tags": rules(["region:eu"], [""])}) == not_allowed(["tags=unknown"])
}

test_no_tags_trip_no_deny_rule if violations("chat", untagged, {"deny_tags": rules(["region:eu"], [""])}) == []

test_moderation_obeys_tag_rules if {
	count(violations("moderation", candidate, {"deny_tags": rules(["region:eu"], [])})) == 1
}

test_allowing_names_the_matching_allow_rules if {
	tags.allowing == {{"candidate": "acme/gpt-x", "rule": "rule_1"}} with input as call("chat", candidate)
		with data.subjects as {"key_1": {"enforce": {}, "shadow": {"allow_tags": rules(["region:eu"], ["retention:"])}}}
}
