package gateway.iam.models_test

import data.gateway.iam.models

candidate := {
	"id": "openai/gpt-x",
	"names": ["gpt-x", "gpt-latest", "openai/gpt-x", "openai/gpt-latest"],
	"provider_names": ["openai"],
	"free": false,
}

call(action) := {
	"action": action,
	"client_ip": null,
	"subjects": [{"scope": "key", "id": "key_1"}],
	"candidates": [candidate],
}

rules(exact, prefixes) := {
	"rules": ["rule_1", "rule_2"],
	"exact": {name: ["rule_1"] | some name in exact},
	"prefixes": {concat("", [prefix, "*"]): {"prefix": prefix, "rules": ["rule_2"]} | some prefix in prefixes},
}

violations(action, set_of_rules) := result if {
	result := [found.violation | some found in models.violations] with input as call(action)
		with data.subjects as {"key_1": {"enforce": set_of_rules}}
}

denied(values, rule_ids) := [{
	"scope": "key",
	"kind": "models",
	"effect": "deny",
	"candidate": "openai/gpt-x",
	"ruleIds": rule_ids,
	"values": values,
}]

not_allowed := [{
	"scope": "key",
	"kind": "models",
	"effect": "allow",
	"candidate": "openai/gpt-x",
	"ruleIds": ["rule_1", "rule_2"],
	"values": ["gpt-latest", "gpt-x", "openai/gpt-latest", "openai/gpt-x"],
}]

deny_cases := {
	"canonical id": {"exact": ["gpt-x", "o1"], "prefixes": [], "want": denied(["gpt-x"], ["rule_1"])},
	"alias": {"exact": ["gpt-latest"], "prefixes": [], "want": denied(["gpt-latest"], ["rule_1"])},
	"provider and id": {"exact": ["openai/gpt-x"], "prefixes": [], "want": denied(["openai/gpt-x"], ["rule_1"])},
	"prefix": {"exact": [], "prefixes": ["gpt-"], "want": denied(["gpt-*"], ["rule_2"])},
	"prefix with provider": {"exact": [], "prefixes": ["openai/"], "want": denied(["openai/*"], ["rule_2"])},
	"the star alone": {"exact": [], "prefixes": [""], "want": denied(["*"], ["rule_2"])},
	"both forms": {"exact": ["gpt-x"], "prefixes": ["gpt-"], "want": denied(["gpt-*", "gpt-x"], ["rule_1", "rule_2"])},
	"another provider's": {"exact": ["azure/gpt-x"], "prefixes": ["azure/"], "want": []},
	"another case": {"exact": ["GPT-X"], "prefixes": ["GPT"], "want": []},
	"part of a name": {"exact": ["gpt"], "prefixes": ["x"], "want": []},
}

test_deny[note] if {
	some note, tc in deny_cases
	violations("chat", {"deny_models": rules(tc.exact, tc.prefixes)}) == tc.want
}

# An allow rule matches exactly where a deny rule would.
test_allow[note] if {
	some note, tc in deny_cases
	want := [violation | some violation in not_allowed; tc.want == []]
	violations("image", {"allow_models": rules(tc.exact, tc.prefixes)}) == want
}

test_matching_nothing_in_the_catalogue_still_restricts if {
	violations("chat", {"allow_models": rules([], [])}) == not_allowed
}

test_moderation_skips_model_rules if {
	violations("moderation", {"deny_models": rules(["gpt-x"], [""]), "allow_models": rules([], [])}) == []
}

allowing(action, set_of_rules) := result if {
	result := models.allowing with input as call(action)
		with data.subjects as {"key_1": {"enforce": {}, "shadow": set_of_rules, "report_rules": {"rule_2": true}}}
}

test_allowing_names_the_matching_allow_rules if {
	want := {
		{"candidate": "openai/gpt-x", "rule": "rule_1"},
		{"candidate": "openai/gpt-x", "rule": "rule_2"},
	}
	allowing("chat", {"allow_models": rules(["gpt-x"], ["gpt-"])}) == want
	allowing("chat", {"allow_models": rules(["o1"], ["claude-"])}) == set()
	allowing("moderation", {"allow_models": rules(["gpt-x"], ["gpt-"])}) == set()
}
