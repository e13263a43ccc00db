import type { Database } from '../../store/db/database.ts';
import { addPlaygroundKeys, findPlaygroundKey, type KeyRecord } from '../../store/tenants/key-records.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { getProject } from '../../store/tenants/tenants.ts';

/**
 * The key with which a member tries models in a project at the dashboard. It is made together with the member or the project
 * (src/admin/README.md, "kind"), or here where it is missing; 404 for a member or a project that is not the organization's.
 * Runs inside one transaction of the caller's. @param now epoch ms
 */
export function playgroundKey(
  db: Database,
  organizationId: string,
  memberId: string,
  projectId: string,
  now: number,
): KeyRecord {
  getMember(db, organizationId, memberId);
  getProject(db, organizationId, projectId);
  const find = () => findPlaygroundKey(db, organizationId, memberId, projectId);
  const present = find();
  if (present !== undefined) return present;
  addPlaygroundKeys(db, organizationId, { memberId, projectId }, now);
  const made = find();
  if (made === undefined) throw new Error(`No playground key was made of ${memberId} in ${projectId}.`);
  return made;
}
