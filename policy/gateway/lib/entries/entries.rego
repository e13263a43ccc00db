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
