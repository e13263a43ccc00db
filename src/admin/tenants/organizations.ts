import { checkShape } from '../../domain/check-shape.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  MasterKeyRecord,
  MemberRecord,
  OrganizationAnswer,
  OrganizationRecord,
  ProjectRecord,
  WantedKeyLimits,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { StoredSecret } from '../../store/db/tables.ts';
import * as store from '../../store/tenants/tenants.ts';
import { initializeTenant } from '../../store/tenants/tenants.ts';
import { type Actor, type AuditTargetType, checkIsOwner, recordChange } from '../audit/audit-trail.ts';
import { LIMIT_EXPLANATIONS, MINUTE_LIMIT_EXPLANATION, parseSetting, settingOf } from '../keys/key-limits.ts';
import { getKey } from '../keys/keys.ts';
import { getMasterKey } from '../keys/master-keys.ts';
import { newSecret, type SecretWrite } from '../keys/new-secret.ts';
import { getMember } from './members.ts';
import { getProject } from './projects.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  ...LIMIT_EXPLANATIONS,
  MINUTE_LIMIT_EXPLANATION,
];

/** Every organization of this installation, oldest first: for the command line, which belongs to none. */
export const listOrganizations = (db: Database): OrganizationRecord[] => store.listOrganizations(db).map(view);

/** The actor's organization, for every role. */
export const getOrganization = (db: Database, { organizationId }: Actor): OrganizationAnswer => ({
  organization: view(store.getOrganization(db, organizationId)),
});

/**
 * Changes the name, the plan or the limits of the actor's organization, for owners only (403). A plan holds from the next write of a rule
 * on: rules that it could no longer write stay in force, and can be deleted (src/admin/README.md, "plan").
 * @param body as `OrganizationPatch`, unchecked. @param now epoch ms
 */
export function changeOrganization(db: Database, actor: Actor, body: unknown, now: number): OrganizationAnswer {
  const patch = checkShape(validator('OrganizationPatch'), body, EXPLANATIONS);
  return db.transaction(() => {
    checkIsOwner(actor);
    const { organization: before } = getOrganization(db, actor);
    const { newKeyLimits, ...others } = patch;
    const changes =
      newKeyLimits === undefined ? others : { ...others, newKeyLimitsJson: settingText(newKeyLimits, now) };
    const organization = view(store.updateOrganization(db, actor.organizationId, changes, now));
    recordChange(db, actor, 'organization', 'update', { before, after: organization }, now);
    return { organization };
  });
}

const settingText = (wanted: WantedKeyLimits | null, now: number): string | null =>
  wanted === null ? null : JSON.stringify(settingOf(wanted, now));

const view = ({
  id,
  createdAt,
  updatedAt,
  name,
  plan,
  newKeyLimitsJson,
  requestsPerMinute,
  tokensPerMinute,
}: store.OrganizationRecord): OrganizationRecord => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  name,
  plan,
  newKeyLimits: parseSetting(newKeyLimitsJson),
  requestsPerMinute,
  tokensPerMinute,
});

const NEW_ORGANIZATION_EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  { at: /^\/ownerEmail$/, must: 'must be an e-mail address of at most 254 ASCII characters' },
];

/**
 * Adds an organization to this installation: for the command line, which belongs to none. Its master key makes everything else;
 * its secret is shown here and never again.
 * @param body as `OrganizationCreate`, unchecked; 400 when it is not.
 */
export function createOrganization(db: Database, body: unknown, write: SecretWrite): Tenant {
  const wanted = checkShape(validator('OrganizationCreate'), body, NEW_ORGANIZATION_EXPLANATIONS);
  return db.transaction(() => addTenant(db, wanted, write));
}

/** An organization with what it began with; its master key with the secret. */
export interface Tenant {
  readonly organization: OrganizationRecord;
  readonly project: ProjectRecord;
  readonly owner: MemberRecord;
  readonly masterKey: MasterKeyRecord & { readonly token: string };
}

interface WantedTenant {
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
