# METADATA
# title: IP rules
# description: >-
#   `allow_ip_cidrs` and `deny_ip_cidrs`, judged once for each subject. An unknown address violates every IP rule. Ranges
#   and the address arrive in canonical form; a range that cannot be compared counts as matched for a deny rule, and as
#   not matched for an allow rule.
# schemas:
#   - input: schema.input
package gateway.iam.ip

import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of IP rules
violations := array.concat(_denied, _not_allowed)

_denied := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.deny_ip_cidrs
	matches := _denying(rules, input.client_ip)
	matches != set()
	found := violation.denied(applied, "ip_cidrs", matches)
]

_not_allowed := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.allow_ip_cidrs
	not _allowed(rules, input.client_ip)
	found := violation.not_allowed(applied, "ip_cidrs", rules.rules, [_shown(input.client_ip)])
]

# METADATA
# title: Matching allow rules
# description: The allow rules that match the client address, report rules included.
allowing contains rule if {
	some applied in scopes.shadow
	some range, rules in applied.rules.allow_ip_cidrs.ranges
	net.cidr_contains(range, input.client_ip)
	some rule in rules
}

_denying(rules, null) := {["unknown", rule] | some rule in rules.rules}

_denying(rules, address) := {[range, rule] |
	some range, listed in rules.ranges
	not _outside(range, address)
	some rule in listed
} if {
	address != null
}

_outside(range, address) if net.cidr_contains(range, address) == false

_allowed(rules, address) if {
	address != null
	some range, _ in rules.ranges
	net.cidr_contains(range, address)
}

_shown(null) := "unknown"

_shown(address) := address if address != null
