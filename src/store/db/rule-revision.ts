import type { Database } from './database.ts';
import { build } from './sql.ts';

/** Raises the organization's rule revision, in the transaction of what it is raised for: running calls are judged again. */
export const raiseRuleRevision = (db: Database, organizationId: string): number =>
  db.get(
    build
      .updateTable('organizations')
      .set((row) => ({ ruleRevision: row('ruleRevision', '+', 1) }))
      .where('id', '=', organizationId)
      .returning('ruleRevision'),
  )?.ruleRevision ?? 0;
