package gateway.authz_test

import data.gateway.authz

cheap := {
	"id": "openai/gpt-x",
	"names": ["gpt-x", "openai/gpt-x"],
	"provider_names": ["openai"],
	"free": false,
	"input_price": 1,
	"output_price": 2,
}

dear := {
	"id": "azure/gpt-x",
	"names": ["gpt-x", "azure/gpt-x"],
	"provider_names": ["azure"],
	"free": false,
	"input_price": 10,
	"output_price": 20,
}

member := {"scope": "member", "id": "mem_1"}

key := {"scope": "key", "id": "key_1"}

call := {"action": "chat", "client_ip": "192.0.2.1", "subjects": [member, key], "candidates": [cheap, dear]}

no_rules := {"enforce": {}}

providers(rule, entry) := {"rules": [rule], "exact": {entry: [rule]}}

models(rule, entry) := {"rules": [rule], "exact": {entry: [rule]}, "prefixes": {}}

everywhere(rules) := {"rules": rules, "ranges": {"0.0.0.0/0": rules}}

nothing_decided := {"permitted": [], "violations": []}

test_without_rules_everything_is_permitted if {
	authz.decision == {"permitted": ["azure/gpt-x", "openai/gpt-x"], "violations": []} with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
}

test_every_scope_must_pass if {
	authz.decision == {
		"permitted": [],
		"violations": [
			{
				"scope": "key",
				"kind": "providers",
				"effect": "deny",
				"candidate": "openai/gpt-x",
				"ruleIds": ["rule_2"],
				"values": ["openai"],
			},
			{
				"scope": "member",
				"kind": "providers",
				"effect": "allow",
				"candidate": "azure/gpt-x",
				"ruleIds": ["rule_1"],
				"values": ["azure"],
			},
		],
	} with input as call
		with data.subjects as {
			"mem_1": {"enforce": {"allow_providers": providers("rule_1", "openai")}},
			"key_1": {"enforce": {"deny_providers": providers("rule_2", "openai")}},
		}
}

test_kinds_combine_with_and if {
	allowed := {"allow_models": models("rule_1", "gpt-x"), "allow_providers": providers("rule_2", "openai")}
	authz.permitted == ["openai/gpt-x"] with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": {"enforce": allowed}}
}

test_deny_wins_over_allow if {
	mixed := {"allow_models": models("rule_1", "gpt-x"), "deny_models": models("rule_2", "openai/gpt-x")}
	authz.permitted == ["azure/gpt-x"] with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": {"enforce": mixed}}
}

test_an_address_violation_counts_for_every_candidate if {
	rules := {"deny_ip_cidrs": {"rules": ["rule_1"], "ranges": {"192.0.2.0/24": ["rule_1"]}}}
	authz.decision == {"permitted": [], "violations": [{
		"scope": "key",
		"kind": "ip_cidrs",
		"effect": "deny",
		"ruleIds": ["rule_1"],
		"values": ["192.0.2.0/24"],
	}]} with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": {"enforce": rules}}
}

test_report_deny_rule_would_deny if {
	reporting := {
		"enforce": {},
		"shadow": {"deny_providers": providers("rule_1", "azure")},
		"report_rules": {"rule_1": true},
	}
	authz.decision == {
		"permitted": ["azure/gpt-x", "openai/gpt-x"],
		"violations": [],
		"shadow": {"permitted": ["openai/gpt-x"], "would_deny": {"rule_1"}, "would_allow": set()},
	} with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": reporting}
}

test_report_allow_rule_would_allow_and_never_changes_the_answer[kind] if {
	some kind, pair in {
		"providers": [providers("rule_1", "azure"), {"rules": ["rule_1", "rule_2"], "exact": {"azure": ["rule_1"], "openai": ["rule_2"]}}],
		"ip_cidrs": [
			{"rules": ["rule_1"], "ranges": {"198.51.100.0/24": ["rule_1"]}},
			{"rules": ["rule_1", "rule_2"], "ranges": {"198.51.100.0/24": ["rule_1"], "192.0.2.0/24": ["rule_2"]}},
		],
	}
	rule_type := concat("_", ["allow", kind])
	reporting := {
		"enforce": {rule_type: pair[0]},
		"shadow": {rule_type: pair[1]},
		"report_rules": {"rule_2": true},
	}
	decision := authz.decision with input as call with data.subjects as {"mem_1": no_rules, "key_1": reporting}
	not "openai/gpt-x" in decision.permitted
	decision.shadow == {
		"permitted": ["azure/gpt-x", "openai/gpt-x"],
		"would_deny": set(),
		"would_allow": {"rule_2"},
	}
}

# Next to the enforced model x, the report rules allow the model y (report_1) and require the provider p (report_2): x at q
# would be lost and y at p gained. report_2 would deny the one and allow the other, and counts as would_allow alone.
test_a_rule_that_would_allow_does_not_also_count_as_would_deny if {
	lost := {"id": "q/x", "names": ["x"], "provider_names": ["q"], "free": false}
	gained := {"id": "p/y", "names": ["y"], "provider_names": ["p"], "free": false}
	reporting := {
		"enforce": {"allow_models": models("enforce_1", "x"), "allow_ip_cidrs": everywhere(["enforce_2"])},
		"shadow": {
			"allow_models": {
				"rules": ["enforce_1", "report_1", "report_4"],
				"exact": {"x": ["enforce_1", "report_4"], "y": ["enforce_1", "report_1"]},
				"prefixes": {},
			},
			"allow_providers": providers("report_2", "p"),
			"allow_ip_cidrs": everywhere(["enforce_2", "report_3"]),
		},
		"report_rules": {"report_1": true, "report_2": true, "report_3": true, "report_4": true},
	}
	decision := authz.decision with input as object.union(call, {"candidates": [lost, gained]})
		with data.subjects as {"mem_1": no_rules, "key_1": reporting}
	decision.permitted == ["q/x"]
	decision.shadow == {
		"permitted": ["p/y"],
		"would_deny": set(),
		"would_allow": {"report_1", "report_2", "report_3"},
	}
}

test_a_matching_report_rule_that_gains_nothing_would_not_allow if {
	reporting := {
		"enforce": {},
		"shadow": {"allow_ip_cidrs": {"rules": ["rule_1"], "ranges": {"192.0.2.0/24": ["rule_1"]}}},
		"report_rules": {"rule_1": true},
	}
	decision := authz.decision with input as call with data.subjects as {"mem_1": no_rules, "key_1": reporting}
	decision.shadow == {
		"permitted": ["azure/gpt-x", "openai/gpt-x"],
		"would_deny": set(),
		"would_allow": set(),
	}
}

malformed := {
	"unknown action": object.union(call, {"action": "embed"}),
	"no action": object.remove(call, ["action"]),
	"address of another type": object.union(call, {"client_ip": 7}),
	"no address": object.remove(call, ["client_ip"]),
	"no subjects": object.union(call, {"subjects": []}),
	"subjects missing": object.remove(call, ["subjects"]),
	"unknown subject": object.union(call, {"subjects": [key, {"scope": "member", "id": "mem_2"}]}),
	"no candidates": object.union(call, {"candidates": []}),
	"candidates missing": object.remove(call, ["candidates"]),
	"one id twice": object.union(call, {"candidates": [cheap, object.union(dear, {"id": "openai/gpt-x"})]}),
	"an id that is no text": object.union(call, {"candidates": [cheap, object.union(dear, {"id": 7})]}),
	"no names": object.union(call, {"candidates": [cheap, object.union(dear, {"names": []})]}),
	"no provider names": object.union(call, {"candidates": [cheap, object.remove(dear, ["provider_names"])]}),
	"free is no boolean": object.union(call, {"candidates": [cheap, object.union(dear, {"free": "yes"})]}),
}

test_a_malformed_call_decides_nothing[note] if {
	some note, bad in malformed
	authz.decision == nothing_decided with input as bad with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
	permitted := [ids | ids := authz.permitted] with input as bad
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
	permitted == []
}

test_without_input_or_data_nothing_is_decided if {
	authz.decision == nothing_decided with input as null with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
	authz.decision == nothing_decided with input as call with data.subjects as {}
	authz.decision == nothing_decided with input as call with data.subjects as {"mem_1": {}, "key_1": no_rules}
}

closed := {"id": "hours", "message": "closed"}

denial := {"scope": "custom", "kind": "custom", "effect": "deny", "ruleIds": ["hours"], "values": ["closed"]}

test_custom_denies_every_candidate if {
	authz.decision == {"permitted": [], "violations": [denial]} with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
		with data.custom.deny as {closed}
	authz.permitted == [] with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
		with data.custom.deny as {closed}
}

test_custom_denies_one_candidate if {
	decided := authz.decision with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
		with data.custom.deny as {object.union(closed, {"candidate": "openai/gpt-x"})}
	decided.permitted == ["azure/gpt-x"]
	decided.violations == [object.union(denial, {"candidate": "openai/gpt-x"})]
}

test_custom_denies_in_the_shadow_too if {
	report := {"enforce": {}, "shadow": {}, "report_rules": {"rule_1": true}}
	decided := authz.decision with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": report}
		with data.custom.deny as {closed}
	decided.shadow == {"permitted": [], "would_deny": set(), "would_allow": set()}
}

test_custom_that_is_no_set_decides_nothing[note] if {
	some note, denials in {"true": true, "list": [closed], "object": {"a": closed}, "text": "closed"}
	authz.decision == nothing_decided with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
		with data.custom.deny as denials
}

test_custom_that_denies_nothing_changes_nothing if {
	authz.decision == {"permitted": ["azure/gpt-x", "openai/gpt-x"], "violations": []} with input as call
		with data.subjects as {"mem_1": no_rules, "key_1": no_rules}
		with data.custom.deny as set()
}
