# METADATA
# title: Model rules
# description: >-
#   `allow_models` and `deny_models`. An entry equals one of the candidate's names, or is a prefix of one (`claude-*`).
#   Skipped for moderations, whose model is fixed by configuration.
# schemas:
#   - input: schema.input
package gateway.iam.models

import data.gateway.lib.entries
import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of model rules
violations := array.concat(_denied, _not_allowed)

_denied := [{"mode": applied.mode, "violation": found} |
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.deny_models
	some candidate in input.candidates
	entries.covers(rules, candidate.names)
	denied := violation.denied(applied, "models", entries.covered(rules, candidate.names))
	found := violation.of(candidate.id, denied)
]

_not_allowed := [{"mode": applied.mode, "violation": found} |
	input.action != "moderation"
	some applied in scopes.applied
	rules := applied.rules.allow_models
	some candidate in input.candidates
	not entries.covers(rules, candidate.names)
	found := violation.of(candidate.id, violation.not_allowed(applied, "models", rules.rules, candidate.names))
]

# METADATA
# title: Matching allow rules
# description: The allow rules that match a candidate, report rules included.
allowing contains {"candidate": candidate.id, "rule": rule} if {
	input.action != "moderation"
	some applied in scopes.shadow
	rules := applied.rules.allow_models
	some candidate in input.candidates
	some [_, rule] in entries.covered(rules, candidate.names)
}
