const tables = ['organizations', 'projects', 'members', 'keys'];

const columns = tables.flatMap((table) =>
  ['requestsPerMinute', 'tokensPerMinute'].map(
    (column) => `ALTER TABLE ${table} ADD COLUMN ${column} INTEGER CHECK (${column} > 0);`,
  ),
);

/** Limits a minute of keys, members, projects and organizations (src/http/README.md, "Rates and load"); remembered with the key. */
export const minuteLimits = `
${columns.join('\n')}
CREATE TRIGGER keys_minute_limits AFTER UPDATE OF requestsPerMinute, tokensPerMinute ON keys
BEGIN UPDATE changes SET number = number + 1; END;
`;
