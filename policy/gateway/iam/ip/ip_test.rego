package gateway.iam.ip_test

import data.gateway.iam.ip

call(address) := {
	"action": "moderation",
	"client_ip": address,
	"subjects": [{"scope": "key", "id": "key_1"}],
	"candidates": [{"id": "c", "names": ["c"], "provider_names": ["p"], "free": false}],
}

rules := {
	"rules": ["rule_1", "rule_2"],
	"ranges": {"10.0.0.0/8": ["rule_1"], "10.1.0.0/16": ["rule_2"], "2001:db8::/32": ["rule_2"]},
}

violations(address, set_of_rules) := result if {
	result := [found.violation | some found in ip.violations] with input as call(address)
		with data.subjects as {"key_1": {"enforce": set_of_rules}}
}

violation(effect, rule_ids, values) := {
	"scope": "key",
	"kind": "ip_cidrs",
	"effect": effect,
	"ruleIds": rule_ids,
	"values": values,
}

both := ["rule_1", "rule_2"]

deny_cases := {
	"in two ranges": {"address": "10.1.2.3", "ruleIds": both, "values": ["10.0.0.0/8", "10.1.0.0/16"]},
	"first of a range": {"address": "10.0.0.0", "ruleIds": ["rule_1"], "values": ["10.0.0.0/8"]},
	"last of a range": {"address": "10.255.255.255", "ruleIds": ["rule_1"], "values": ["10.0.0.0/8"]},
	"IPv6": {"address": "2001:db8::1", "ruleIds": ["rule_2"], "values": ["2001:db8::/32"]},
	"unknown": {"address": null, "ruleIds": both, "values": ["unknown"]},
}

test_deny[note] if {
	some note, tc in deny_cases
	violations(tc.address, {"deny_ip_cidrs": rules}) == [violation("deny", tc.ruleIds, tc.values)]
}

test_allow[note] if {
	some note, tc in deny_cases
	want := [violation("allow", both, ["unknown"]) | tc.address == null]
	violations(tc.address, {"allow_ip_cidrs": rules}) == want
}

test_outside_of_every_range[address] if {
	some address in ["9.255.255.255", "11.0.0.0", "2001:db9::"]
	violations(address, {"deny_ip_cidrs": rules}) == []
	violations(address, {"allow_ip_cidrs": rules}) == [violation("allow", both, [address])]
}

test_what_cannot_be_compared_is_denied if {
	malformed := {"rules": ["rule_1"], "ranges": {"10.0.0.0/99": ["rule_1"]}}
	violations("10.1.2.3", {"deny_ip_cidrs": malformed}) == [violation("deny", ["rule_1"], ["10.0.0.0/99"])]
	violations("10.1.2.3", {"allow_ip_cidrs": malformed}) == [violation("allow", ["rule_1"], ["10.1.2.3"])]
	count(violations("nowhere", {"deny_ip_cidrs": rules})) == 1
	count(violations("nowhere", {"allow_ip_cidrs": rules})) == 1
}

test_wide_ipv6_ranges_hold_no_ipv4_client if {
	everything := {"rules": ["rule_1"], "ranges": {"::/0": ["rule_1"]}}
	violations("10.1.2.3", {"deny_ip_cidrs": everything}) == []
	count(violations("2001:db8::1", {"deny_ip_cidrs": everything})) == 1
}

test_allowing_names_the_matching_allow_rules if {
	ip.allowing == {"rule_1"} with input as call("10.9.9.9")
		with data.subjects as {"key_1": {"enforce": {}, "shadow": {"allow_ip_cidrs": rules}}}
}
