/** Tags of keys, a sorted JSON list: a fact of custom policy (policy/bundles.md, "Custom policy"); remembered with the key. */
export const keyTags = `
ALTER TABLE keys ADD COLUMN tagsJson TEXT NOT NULL DEFAULT '[]';
CREATE TRIGGER keys_tagged AFTER UPDATE OF tagsJson ON keys
BEGIN UPDATE changes SET number = number + 1; END;
`;
