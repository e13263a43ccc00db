package gateway.lib.violation_test

import data.gateway.lib.violation

test_denied_lists_matching_rules_and_entries_once_and_sorted if {
	violation.denied({"scope": "key", "id": "key_1"}, "models", {["b", "rule_2"], ["a", "rule_2"], ["a", "rule_1"]}) == {
		"scope": "key",
		"kind": "models",
		"effect": "deny",
		"ruleIds": ["rule_1", "rule_2"],
		"values": ["a", "b"],
	}
}

test_not_allowed_lists_all_rules_and_what_was_offered if {
	violation.not_allowed({"scope": "member", "id": "mem_1"}, "providers", ["rule_1", "rule_2"], ["custom:acme", "custom"]) == {
		"scope": "member",
		"kind": "providers",
		"effect": "allow",
		"ruleIds": ["rule_1", "rule_2"],
		"values": ["custom", "custom:acme"],
	}
}

test_of_a_group_names_it if {
	violation.denied({"scope": "group", "id": "grp_1"}, "models", {["a", "rule_1"]}) == {
		"scope": "group",
		"group": "grp_1",
		"kind": "models",
		"effect": "deny",
		"ruleIds": ["rule_1"],
		"values": ["a"],
	}
}

test_of_names_the_candidate if {
	violation.of("openai/gpt-x", {"scope": "key"}) == {"scope": "key", "candidate": "openai/gpt-x"}
}

test_custom_is_a_denial_with_its_own_id if {
	violation.custom({"id": "hours", "message": "closed"}) == {
		"scope": "custom",
		"kind": "custom",
		"effect": "deny",
		"ruleIds": ["hours"],
		"values": ["closed"],
	}
}

test_custom_may_name_a_candidate if {
	violation.custom({"id": "hours", "message": "closed", "candidate": "a"}).candidate == "a"
}

test_custom_denies_whatever_it_says[note] if {
	some note, denial in {"text": "closed", "number": 7, "empty": {}, "number as id": {"id": 7}, "list": ["id"]}
	violation.custom(denial) == {
		"scope": "custom",
		"kind": "custom",
		"effect": "deny",
		"ruleIds": ["without id"],
		"values": ["without message"],
	}
}
