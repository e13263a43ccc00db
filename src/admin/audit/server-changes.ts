import type { Database } from '../../store/db/database.ts';
import { listOrganizations } from '../../store/tenants/tenants.ts';
import { type Change, type Done, recordChange, type ServerTargetType } from './audit-trail.ts';

/**
 * Notes what was done on the command line to the installation itself, in the audit log of every organization, since all of them
 * depend on it. @param now epoch ms
 */
export function recordServerChange<Type extends ServerTargetType>(
  db: Database,
  type: Type,
  done: Done<Type>,
  change: Change,
  now: number,
): void {
  db.transaction(() => {
    for (const { id } of listOrganizations(db)) {
      recordChange(db, { kind: 'cli', organizationId: id }, type, done, change, now);
    }
  });
}
