const triggers = ['INSERT', 'UPDATE', 'DELETE'].map(
  (event) => `CREATE TRIGGER tag_sets_${event.toLowerCase()} AFTER ${event} ON tag_sets
BEGIN UPDATE changes SET number = number + 1; END;`,
);

/** An organization's own tags, by what they stand on (policy/reference.md, "Tags of your own"); remembered between calls. */
export const tagSets = `
CREATE TABLE tag_sets (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  target TEXT NOT NULL,
  tagsJson TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  UNIQUE (organizationId, target)
) STRICT;
${triggers.join('\n')}
`;
