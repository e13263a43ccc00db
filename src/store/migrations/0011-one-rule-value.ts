/**
 * The canonical form of a rule is a function of its value. Parts of long texts that only canonical forms had stay behind: they
 * were stored for rules with long lists of ranges or with repeated entries, and nothing refers to them.
 */
export const oneRuleValue = `ALTER TABLE rules DROP COLUMN canonical_json`;
