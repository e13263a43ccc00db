const scopes = (...names: string[]): string => `scope IN (${names.map((name) => `''${name}''`).join(', ')})`;

const triggers = ['groups', 'group_holders'].flatMap((table) =>
  ['INSERT', 'UPDATE', 'DELETE'].map(
    (event) => `CREATE TRIGGER ${table}_${event.toLowerCase()} AFTER ${event} ON ${table}
BEGIN UPDATE changes SET number = number + 1; END;`,
  ),
);

/**
 * Groups of members and keys, a scope of rules between the organization and the member. Who is in which is remembered with a key
 * (0014-changes.ts). The scopes that a subject may have are changed in the text of the schema, as in 0012-column-names.ts: a table
 * would have to be copied for it.
 */
export const groups = `
CREATE TABLE groups (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  name TEXT NOT NULL,
  description TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX groups_by_organization ON groups (organizationId, id);
CREATE UNIQUE INDEX groups_by_name ON groups (organizationId, name) WHERE deletedAt IS NULL;
CREATE TABLE group_holders (
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  groupId TEXT NOT NULL REFERENCES groups (id),
  holderId TEXT NOT NULL,
  PRIMARY KEY (holderId, groupId)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_holders_by_group ON group_holders (groupId, holderId);
${triggers.join('\n')}

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '${scopes('organization', 'member', 'key')}',
  '${scopes('organization', 'group', 'member', 'key')}') WHERE name IN ('subject_rules', 'rules');
PRAGMA writable_schema = RESET;
CREATE TABLE changed (id);
DROP TABLE changed;
`;
