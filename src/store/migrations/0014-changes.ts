/** What of each table is remembered between calls (freshness.ts); undefined: all of it. Left out is what the calls themselves book. */
const REMEMBERED: Readonly<Record<string, string | undefined>> = {
  organizations: undefined,
  projects: undefined,
  members: undefined,
  keys: `id, organizationId, projectId, createdBy, description, kind, secretHash, pepperId, mask, status, disabledAt, deletedAt,
    expiresAt, usageLimit, periodUsageLimit, periodUsageDurationValue, periodUsageDurationUnit, createdAt, updatedAt,
    previousSecretHash, previousPepperId, previousSecretEndsAt`,
  budgets: `subjectId, organizationId, scope, usageLimit, periodUsageLimit, periodUsageDurationValue, periodUsageDurationUnit`,
  custom_providers: undefined,
  custom_models: undefined,
  provider_keys: undefined,
};

const triggers = Object.entries(REMEMBERED).flatMap(([table, columns]) =>
  Object.entries({
    inserted: 'INSERT',
    deleted: 'DELETE',
    updated: columns === undefined ? 'UPDATE' : `UPDATE OF ${columns}`,
  }).map(
    ([name, event]) => `CREATE TRIGGER ${table}_${name} AFTER ${event} ON ${table}
BEGIN UPDATE changes SET number = number + 1; END;`,
  ),
);

/**
 * A number that grows with every change of what is remembered between calls, and that the booking of a call leaves as it is. By it
 * a connection that books no calls knows whether what it remembers still holds.
 */
export const changes = `
CREATE TABLE changes (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL) STRICT;
INSERT INTO changes VALUES (1, 0);
${triggers.join('\n')}
`;
