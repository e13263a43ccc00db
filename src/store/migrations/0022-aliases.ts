const triggers = ['INSERT', 'UPDATE', 'DELETE'].map(
  (event) => `CREATE TRIGGER aliases_${event.toLowerCase()} AFTER ${event} ON aliases
BEGIN UPDATE changes SET number = number + 1; END;`,
);

/** An organization's or a project's own names for lists of models (src/config/README.md, "Aliases"); remembered between calls. */
export const aliases = `
CREATE TABLE aliases (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  projectId TEXT REFERENCES projects (id),
  name TEXT NOT NULL,
  modelsJson TEXT NOT NULL,
  weightsJson TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX aliases_name ON aliases (organizationId, name, ifnull(projectId, ''));
${triggers.join('\n')}
`;
