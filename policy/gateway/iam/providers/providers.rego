# METADATA
# title: Provider rules
# description: >-
#   `allow_providers` and `deny_providers`. An entry equals one of the candidate's provider names: the provider's id, or
#   `custom` and `custom:<name>` for a custom provider.
# schemas:
#   - input: schema.input
package gateway.iam.providers

import data.gateway.lib.entries
import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Violations of provider rules
violations := array.concat(_denied, _not_allowed)

_denied := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.deny_providers
	some candidate in input.candidates
	entries.listed(rules.exact, candidate.provider_names)
	matches := entries.matches(rules.exact, candidate.provider_names)
	found := violation.of(candidate.id, violation.denied(applied, "providers", matches))
]

_not_allowed := [{"mode": applied.mode, "violation": found} |
	some applied in scopes.applied
	rules := applied.rules.allow_providers
	some candidate in input.candidates
	not entries.listed(rules.exact, candidate.provider_names)
	refused := violation.not_allowed(applied, "providers", rules.rules, candidate.provider_names)
	found := violation.of(candidate.id, refused)
]

# METADATA
# title: Matching allow rules
# description: The allow rules that match a candidate, report rules included.
allowing contains {"candidate": candidate.id, "rule": rule} if {
	some applied in scopes.shadow
	rules := applied.rules.allow_providers
	some candidate in input.candidates
	some [_, rule] in entries.matches(rules.exact, candidate.provider_names)
}
