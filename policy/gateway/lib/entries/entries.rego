# METADATA
# title: Entries
# description: >-
#   Looks names up in a map of entries to the rules that list them. Maps are never scanned: a subject may have thousands of
#   entries, a candidate has a handful of names.
package gateway.lib.entries

# METADATA
# title: Listed
# description: Some name is an entry. Much cheaper than collecting the matches, which only a violation needs.
listed(exact, names) if {
	some name in names
	exact[name]
}

# METADATA
# title: Matches
# description: Every pair of an entry that is one of the names and a rule that lists it.
matches(exact, names) := {[name, rule] |
	some name in names
	some rule in exact[name]
}

# METADATA
# title: Covers
# description: Some name is an entry of the rules, or begins with one of their prefixes. Cheaper than collecting the matches.
covers(rules, names) if listed(rules.exact, names)

covers(rules, names) if {
	some entry in rules.prefixes
	some name in names
	startswith(name, entry.prefix)
}

# METADATA
# title: Covered
# description: Every pair of an entry or prefix that covers one of the names and a rule that lists it.
covered(rules, names) := matches(rules.exact, names) | _prefix_matches(rules.prefixes, names)

_prefix_matches(prefixes, names) := {[entry, rule] |
	some entry, listed in prefixes
	some name in names
	startswith(name, listed.prefix)
	some rule in listed.rules
}
