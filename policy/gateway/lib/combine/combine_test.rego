package gateway.lib.combine_test

import data.gateway.lib.combine

test_without_violations_all_are_permitted if combine.permitted({"a", "b"}, []) == ["a", "b"]

test_one_violation_is_enough if {
	violations := [{"candidate": "a", "scope": "member"}, {"candidate": "a", "scope": "key"}]
	combine.permitted({"a", "b"}, violations) == ["b"]
}

test_a_violation_without_candidate_counts_for_all if {
	combine.permitted({"a", "b"}, [{"candidate": "a"}, {"kind": "ip_cidrs"}]) == []
}

test_would_deny_names_report_rules_of_lost_candidates_only if {
	violations := [
		{"candidate": "lost", "ruleIds": ["report_1", "enforce_1"]},
		{"candidate": "kept", "ruleIds": ["report_2"]},
	]
	combine.would_deny({"report_1", "report_2"}, violations, {"lost"}) == {"report_1"}
}

test_would_deny_counts_address_violations_when_something_is_lost if {
	violations := [{"kind": "ip_cidrs", "ruleIds": ["report_1"]}]
	combine.would_deny({"report_1"}, violations, {"lost"}) == {"report_1"}
	combine.would_deny({"report_1"}, violations, set()) == set()
}
