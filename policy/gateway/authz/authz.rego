# METADATA
# title: Authorization
# description: >-
#   Judges every candidate of a call by the rules of every subject of the call. Rules are data; nothing here names a
#   model, a provider, a price or an address.
# schemas:
#   - input: schema.input
package gateway.authz

import data.gateway.iam
import data.gateway.lib.combine
import data.gateway.lib.scopes
import data.gateway.lib.violation

# METADATA
# title: Decision
# description: >-
#   What is permitted, every violation, and the shadow of the rules in mode `report`. When the call cannot be judged
#   nothing is permitted and nothing violated, which the caller reports as a failure to evaluate.
# entrypoint: true
default decision := {"permitted": [], "violations": []}

decision := {"permitted": _permitted, "violations": _violations} if {
	_well_formed
	not scopes.reporting
}

decision := {"permitted": _permitted, "violations": _violations, "shadow": _shadow} if {
	_well_formed
	scopes.reporting
}

# METADATA
# title: Permitted
# description: Ids of the permitted candidates alone, for lists. Undefined when the call cannot be judged.
# entrypoint: true
permitted := _permitted if _well_formed

_well_formed if {
	input.action in {"chat", "moderation", "image"}
	type_name(input.client_ip) in {"string", "null"}
	count(input.subjects) > 0
	count(scopes.enforced) == count(input.subjects)
	count(input.candidates) > 0
	count(_candidates) == count(input.candidates)
	not _custom_unreadable
}

# What is no set would be looked through and nothing found in it.
_custom_unreadable if {
	denials := data.custom.deny
	not is_set(denials)
}

_candidates := {candidate.id |
	some candidate in input.candidates
	is_string(candidate.id)
	count(candidate.names) > 0
	count(candidate.provider_names) > 0
	is_boolean(candidate.free)
}

_permitted := combine.permitted(_candidates, _violations)

_violations := array.concat([found.violation | some found in _found; found.mode == "enforce"], _custom)

# A bundle may have a package `custom`. It only adds violations, and so can only narrow what is permitted.
_custom := [violation.custom(denial) | some denial in data.custom.deny]

# Every package below `iam` is a rule kind.
_found := [found | some found in iam[_].violations]

_shadow := {
	"permitted": _shadow_permitted,
	"would_deny": combine.would_deny(scopes.report_rules, _shadow_violations, lost) - _would_allow,
	"would_allow": _would_allow,
} if {
	lost := {candidate | some candidate in _permitted; not candidate in _shadow_permitted}
}

_shadow_permitted := combine.permitted(_candidates, _shadow_violations)

_shadow_violations := array.concat([found.violation | some found in _found; found.mode == "shadow"], _custom)

_gained := {candidate | some candidate in _shadow_permitted; not candidate in _permitted}

_would_allow contains match.rule if {
	count(_gained) > 0
	some match in iam[_].allowing
	match.candidate in _gained
	match.rule in scopes.report_rules
}

_would_allow contains rule if {
	count(_gained) > 0
	some rule in iam.ip.allowing
	rule in scopes.report_rules
}
