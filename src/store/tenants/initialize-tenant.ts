import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { StoredSecret } from '../db/tables.ts';
import { insertKey } from './keys.ts';
import { insertMasterKey } from './master-keys.ts';
import { insertMember } from './members.ts';
import { addPlaygroundKeys } from './playground-keys.ts';
import { insertOrganization, insertProject } from './tenants.ts';

/** An organization and what it begins with; ids and secrets are made by the caller. */
export interface NewTenant {
  readonly organization: { readonly id: string; readonly name: string };
  readonly project: { readonly id: string; readonly name: string };
  readonly owner: { readonly id: string; readonly email: string; readonly passwordHash: string | null };
  readonly masterKey: StoredSecret & { readonly id: string; readonly description: string };
  readonly key?: StoredSecret & { readonly id: string; readonly description: string };
}

/** True until the first organization exists. */
export const isEmpty = (db: Database): boolean =>
  db.get(build.selectFrom('organizations').select('id').limit(1)) === undefined;

/** Creates an organization with its project, owner, master key, playground key and perhaps gateway key, all or nothing. */
export function initializeTenant(db: Database, tenant: NewTenant, now: number): void {
  const organizationId = tenant.organization.id;
  db.transaction(() => {
    insertOrganization(db, tenant.organization, now);
    insertProject(db, { ...tenant.project, organizationId }, now);
    insertMember(db, { ...tenant.owner, organizationId, name: null, role: 'owner' }, now);
    insertMasterKey(db, { ...tenant.masterKey, organizationId, memberId: tenant.owner.id }, now);
    if (tenant.key !== undefined) {
      insertKey(
        db,
        {
          ...tenant.key,
          organizationId,
          projectId: tenant.project.id,
          createdBy: tenant.owner.id,
          kind: 'regular',
          expiresAt: null,
          usageLimit: null,
          periodUsageLimit: null,
          periodUsageDurationValue: null,
          periodUsageDurationUnit: null,
        },
        now,
      );
    }
    addPlaygroundKeys(db, organizationId, { memberId: tenant.owner.id }, now);
  });
}
