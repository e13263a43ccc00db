import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { getOrganization } from './tenants.ts';

/** By the prefix of an id: the table, and its column that says what people call it. */
const NAMED = {
  mem: ['members', 'email'],
  proj: ['projects', 'name'],
  key: ['keys', 'description'],
  mkey: ['master_keys', 'description'],
  rule: ['rules', 'description'],
  grp: ['groups', 'name'],
} as const;

/**
 * What people call members (e-mail), projects, groups, keys, master keys, rules and the organization (name or description), by their ids;
 * those that were removed too, but for rules. What has no name, or is not the organization's, is missing.
 */
export function findNames(db: Database, organizationId: string, ids: Iterable<string>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const byPrefix = Map.groupBy(new Set(ids), (id) => id.slice(0, id.indexOf('_')));
  if (byPrefix.has('org')) names.set(organizationId, getOrganization(db, organizationId).name);
  for (const [prefix, [table, column]] of Object.entries(NAMED)) {
    const wanted = byPrefix.get(prefix);
    if (wanted === undefined) continue;
    const rows = db.all(
      build
        .selectFrom(table)
        .select(['id', sql<string | null>`${sql.ref(column)}`.as('name')])
        .where('organizationId', '=', organizationId)
        .where('id', 'in', wanted),
    );
    for (const { id, name } of rows) if (name) names.set(id, name);
  }
  return names;
}
