# METADATA
# title: Violations
# description: >-
#   The one form of every violation: stable codes and ids, no prose. It is of one subject's rule set (`applied`). A match is
#   a pair of the entry that matched and the rule that lists it.
package gateway.lib.violation

# METADATA
# title: Denied
# description: Deny rules matched.
denied(applied, kind, matches) := object.union(_whose(applied), {
	"kind": kind,
	"effect": "deny",
	"ruleIds": sort({rule | some [_, rule] in matches}),
	"values": sort({entry | some [entry, _] in matches}),
})

# METADATA
# title: Not allowed
# description: >-
#   The scope has allow rules of this kind, and none of them matches what was offered. The rules come sorted from the data
#   document.
not_allowed(applied, kind, rules, offered) := object.union(_whose(applied), {
	"kind": kind,
	"effect": "allow",
	"ruleIds": rules,
	"values": sort({value | some value in offered}),
})

# A call has one organization, one member and one key, but may have several groups.
_whose(applied) := {"scope": applied.scope} if applied.scope != "group"

_whose(applied) := {"scope": "group", "group": applied.id} if applied.scope == "group"

# METADATA
# title: Of a candidate
# description: The violation, naming the one candidate that it concerns.
of(candidate, violation) := object.union(violation, {"candidate": candidate})

# METADATA
# title: Custom
# description: >-
#   What the package `custom` of a bundle denies: `{"id", "message"}`, and `"candidate"` where it is about one. Whatever else it
#   says denies every candidate.
custom(denial) := of(denial.candidate, _custom(denial))

custom(denial) := _custom(denial) if not denial.candidate

_custom(denial) := {
	"scope": "custom",
	"kind": "custom",
	"effect": "deny",
	"ruleIds": [_text(denial, "id")],
	"values": [_text(denial, "message")],
}

_text(denial, field) := denial[field] if _has_text(denial, field)

_text(denial, field) := concat(" ", ["without", field]) if not _has_text(denial, field)

# A rule of its own: within a "not" a field that is missing would make the whole undefined.
_has_text(denial, field) if is_string(denial[field])
