# METADATA
# title: Combining
# description: >-
#   The algebra of decisions. Within a kind allow rules are a union; over kinds and scopes every one must be satisfied; a
#   matching deny wins. All of that is said by violations, so a candidate is permitted exactly when it has none.
package gateway.lib.combine

# METADATA
# title: Permitted
# description: The candidates (ids) that no violation names; none at all while a violation names no candidate.
permitted(_, violations) := [] if _all_blocked(violations)

permitted(candidates, violations) := [candidate | some candidate in candidates; not candidate in blocked] if {
	not _all_blocked(violations)
	blocked := {violation.candidate | some violation in violations}
}

_all_blocked(violations) if {
	some violation in violations
	not violation.candidate
}

# METADATA
# title: Would deny
# description: Report rules among the violations of candidates that enforcement permits and the shadow does not.
would_deny(report_rules, violations, lost) := {rule |
	some violation in violations
	_concerns(violation, lost)
	some rule in violation.ruleIds
	rule in report_rules
}

_concerns(violation, lost) if violation.candidate in lost

_concerns(violation, lost) if {
	not violation.candidate
	count(lost) > 0
}
