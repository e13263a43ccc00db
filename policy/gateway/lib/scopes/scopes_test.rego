package gateway.lib.scopes_test

import data.gateway.lib.scopes

call := {"subjects": [{"scope": "member", "id": "mem_1"}, {"scope": "key", "id": "key_1"}]}

member_rules := {"enforce": {"deny_models": "m"}}

key_rules := {"enforce": {}, "shadow": {"deny_models": "k"}, "report_rules": {"rule_1": true}}

test_each_subject_has_its_enforced_rules_in_order if {
	scopes.enforced == [
		{"mode": "enforce", "scope": "member", "id": "mem_1", "rules": {"deny_models": "m"}},
		{"mode": "enforce", "scope": "key", "id": "key_1", "rules": {}},
	] with input as call with data.subjects as {"mem_1": member_rules, "key_1": key_rules}
}

test_each_group_is_a_rule_set_of_its_own if {
	two := {"subjects": [{"scope": "group", "id": "grp_1"}, {"scope": "group", "id": "grp_2"}]}
	[[applied.scope, applied.id, applied.rules] | some applied in scopes.enforced] == [
		["group", "grp_1", {"deny_models": "m"}],
		["group", "grp_2", {}],
	] with input as two with data.subjects as {"grp_1": member_rules, "grp_2": key_rules}
}

test_an_absent_subject_has_none if {
	count(scopes.enforced) == 1 with input as call with data.subjects as {"key_1": key_rules}
}

test_without_report_rules_there_is_no_shadow if {
	not scopes.reporting with input as call with data.subjects as {"mem_1": member_rules, "key_1": member_rules}
	scopes.applied == scopes.enforced with input as call
		with data.subjects as {"mem_1": member_rules, "key_1": member_rules}
}

test_report_rules_of_one_subject_bring_the_shadow_of_all if {
	modes := [[applied.mode, applied.scope, applied.rules] | some applied in scopes.applied] with input as call
		with data.subjects as {"mem_1": member_rules, "key_1": key_rules}
	modes == [
		["enforce", "member", {"deny_models": "m"}],
		["enforce", "key", {}],
		["shadow", "member", {"deny_models": "m"}],
		["shadow", "key", {"deny_models": "k"}],
	]
}

test_report_rules_are_those_of_the_subjects_of_the_call if {
	scopes.report_rules == {"rule_1"} with input as call
		with data.subjects as {"mem_1": member_rules, "key_1": key_rules, "key_2": {"report_rules": {"rule_2": true}}}
}
