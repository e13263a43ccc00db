package gateway.iam.providers_test

import data.gateway.iam.providers

call(action, names) := {
	"action": action,
	"client_ip": null,
	"subjects": [{"scope": "member", "id": "mem_1"}],
	"candidates": [{"id": "c", "names": ["c"], "provider_names": names, "free": false}],
}

rules(entries) := {"rules": ["rule_1"], "exact": {entry: ["rule_1"] | some entry in entries}}

violations(action, names, set_of_rules) := result if {
	result := [found.violation | some found in providers.violations]
		with input as call(action, names)
		with data.subjects as {"mem_1": {"enforce": set_of_rules}}
}

custom := ["custom", "custom:acme"]

cases := {
	"provider id": {"names": ["openai"], "entries": ["openai", "x"], "matches": ["openai"]},
	"another provider": {"names": ["openai"], "entries": ["open", "openai2", "custom"], "matches": []},
	"every custom provider": {"names": custom, "entries": ["custom"], "matches": ["custom"]},
	"one custom provider": {"names": custom, "entries": ["custom:acme"], "matches": ["custom:acme"]},
	"another custom provider": {"names": custom, "entries": ["custom:other"], "matches": []},
	"a custom provider's bare name": {"names": custom, "entries": ["acme"], "matches": []},
}

test_deny[note] if {
	some note, tc in cases
	want := [violation |
		tc.matches != []
		violation := {
			"scope": "member",
			"kind": "providers",
			"effect": "deny",
			"candidate": "c",
			"ruleIds": ["rule_1"],
			"values": tc.matches,
		}
	]
	violations("chat", tc.names, {"deny_providers": rules(tc.entries)}) == want
}

test_allow[note] if {
	some note, tc in cases
	want := [violation |
		tc.matches == []
		violation := {
			"scope": "member",
			"kind": "providers",
			"effect": "allow",
			"candidate": "c",
			"ruleIds": ["rule_1"],
			"values": tc.names,
		}
	]
	violations("chat", tc.names, {"allow_providers": rules(tc.entries)}) == want
}

test_moderation_obeys_provider_rules if {
	count(violations("moderation", ["openai"], {"deny_providers": rules(["openai"])})) == 1
}

test_allowing_names_the_matching_allow_rules if {
	providers.allowing == {{"candidate": "c", "rule": "rule_1"}} with input as call("chat", custom)
		with data.subjects as {"mem_1": {"enforce": {}, "shadow": {"allow_providers": rules(["custom"])}}}
}
