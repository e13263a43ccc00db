# METADATA
# title: Scopes
# description: The rule sets that apply to one call, in the order of its subjects.
# schemas:
#   - input: schema.input
package gateway.lib.scopes

# METADATA
# title: Enforced rule sets
# description: >-
#   One for each subject of the call. A subject that the data document lacks has none, so that fewer rule sets than
#   subjects means that the call cannot be judged.
enforced := [{"mode": "enforce", "scope": subject.scope, "id": subject.id, "rules": rules} |
	some subject in input.subjects
	rules := data.subjects[subject.id].enforce
]

# METADATA
# title: Shadow rule sets
# description: Those of both modes, enforced together. A subject without report rules has the same rules in the shadow.
shadow := [{"mode": "shadow", "scope": subject.scope, "id": subject.id, "rules": rules} |
	some subject in input.subjects
	rules := object.get(data.subjects[subject.id], "shadow", data.subjects[subject.id].enforce)
]

# METADATA
# title: Applied rule sets
# description: What the rule kinds walk. The shadow is among them only where some subject has report rules.
applied := enforced if not reporting

applied := array.concat(enforced, shadow) if reporting

# METADATA
# title: Reporting
# description: Some subject of the call has rules in mode `report`. Never undefined, which would be found out each time.
default reporting := false

reporting if {
	some subject in input.subjects
	data.subjects[subject.id].report_rules
}

# METADATA
# title: Report rules
# description: Ids of the rules in mode `report`, of all subjects.
report_rules contains id if {
	some subject in input.subjects
	some id, true in data.subjects[subject.id].report_rules
}
