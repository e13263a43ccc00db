# METADATA
# title: Model rules
# description: >-
#   `allow_models` and `deny_models`. An entry equals one of the candidate's names, or is a prefix of one (`claude-*`).
#   Skipped for moderations, whose model is fixed by configuration.
# schemas:
#   - input: schema.input
package gateway.iam.models

import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of model rules
violations contains {"mode": applied.mode, "violation": found} if {
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.deny_models
	some candidate in input.candidates
	matches := _matches(rules, candidate.names)
	matches != set()
	found := violation.of(candidate.id, violation.denied(applied.scope, "models", matches))
}

violations contains {"mode": applied.mode, "violation": found} if {
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.allow_models
	some candidate in input.candidates
	_matches(rules, candidate.names) == set()
	found := violation.of(candidate.id, violation.not_allowed(applied.scope, "models", rules.rules, candidate.names))
}

# METADATA
# title: Matching allow rules
# description: The allow rules that match a candidate, report rules included.
allowing contains {"candidate": candidate.id, "rule": rule} if {
	input.action != "moderation"
	some applied in scopes.shadow
	rules := applied.rules.allow_models
	some candidate in input.candidates
	some [_, rule] in _matches(rules, candidate.names)
}

_matches(rules, names) := _exact_matches(rules, names) if rules.prefixes == {}

_matches(rules, names) := _exact_matches(rules, names) | _prefix_matches(rules, names) if rules.prefixes != {}

_exact_matches(rules, names) := {[name, rule] |
	some name in names
	some rule in rules.exact[name]
}

_prefix_matches(rules, names) := {[entry, rule] |
	some entry, listed in rules.prefixes
	some name in names
	startswith(name, listed.prefix)
	some rule in listed.rules
}
