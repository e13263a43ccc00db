import { newId } from '../../domain/id.ts';
import type { MasterKeyRecord, MemberRecord, OrganizationRecord, ProjectRecord } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type { StoredSecret } from '../../store/db/tables.ts';
import { initializeTenant } from '../../store/tenants/tenants.ts';
import type { Actor } from '../audit/actor.ts';
import { type AuditTargetType, recordChange } from '../audit/audit-trail.ts';
import { getKey } from '../keys/keys.ts';
import { getMasterKey } from '../keys/master-keys.ts';
import { newSecret, type SecretWrite } from '../keys/new-secret.ts';
import { getMember } from './members.ts';
import { getOrganization } from './organizations.ts';
import { getProject } from './projects.ts';

/** An organization with what it began with; its master key with the secret. */
export interface Tenant {
  readonly organization: OrganizationRecord;
  readonly project: ProjectRecord;
  readonly owner: MemberRecord;
  readonly masterKey: MasterKeyRecord & { readonly token: string };
}

export interface WantedTenant {
  readonly name: string;
  readonly ownerEmail: string;
  /** Secret of the gateway key that it begins with, if any. */
  readonly gatewayKey?: StoredSecret;
}

/**
 * Adds an organization with a project, its owner and their master key, in one transaction of the caller's. The audit log says
 * that it was the command line: who starts the server for the first time, too, does so there.
 */
export function addTenant(db: Database, wanted: WantedTenant, { now, pepper }: SecretWrite): Tenant {
  const id = {
    organization: newId('org'),
    project: newId('proj'),
    member: newId('mem'),
    masterKey: newId('mkey'),
    key: newId('key'),
  };
  const { token, ...secret } = newSecret('master', pepper);
  const tenant = {
    organization: { id: id.organization, name: wanted.name },
    project: { id: id.project, name: 'Default' },
    owner: { id: id.member, email: wanted.ownerEmail, passwordHash: null },
    masterKey: { id: id.masterKey, description: 'First master key', ...secret },
  };
  const key = wanted.gatewayKey && { id: id.key, description: 'First gateway key', ...wanted.gatewayKey };
  initializeTenant(db, key === undefined ? tenant : { ...tenant, key }, now);

  const actor: Actor = { kind: 'cli', organizationId: id.organization };
  const { organization } = getOrganization(db, actor);
  const { project } = getProject(db, actor, id.project);
  const { member: owner } = getMember(db, actor, id.member);
  const { masterKey } = getMasterKey(db, actor, id.masterKey);
  const record = (type: AuditTargetType, after: { readonly id: string }): void =>
    recordChange(db, actor, type, 'create', { before: null, after }, now);
  record('organization', organization);
  record('project', project);
  record('member', owner);
  record('master_key', masterKey);
  if (key !== undefined) record('key', getKey(db, actor, key.id, now).key);
  return { organization, project, owner, masterKey: { ...masterKey, token } };
}
