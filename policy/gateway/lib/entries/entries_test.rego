package gateway.lib.entries_test

import data.gateway.lib.entries

exact := {"a": ["rule_1", "rule_2"], "b": ["rule_2"], "c": ["rule_3"]}

test_one_listed_name_is_enough if entries.listed(exact, ["x", "b"])

test_no_listed_name if not entries.listed(exact, ["x", "A", "a "])

test_no_names if not entries.listed(exact, [])

test_matches_pair_each_entry_with_each_of_its_rules if {
	entries.matches(exact, ["a", "b", "x"]) == {["a", "rule_1"], ["a", "rule_2"], ["b", "rule_2"]}
}

test_repeated_names_count_once if entries.matches(exact, ["b", "b"]) == {["b", "rule_2"]}
