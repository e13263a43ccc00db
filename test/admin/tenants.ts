import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { generateSecret, hashSecret, maskSecret, type Pepper, type SecretKind } from '../../src/domain/id.ts';
import type { EncryptionKey } from '../../src/domain/provider.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import type { Role, StoredSecret } from '../../src/store/db/tables.ts';
import { insertKey, type NewKey } from '../../src/store/tenants/key-records.ts';
import { insertMasterKey } from '../../src/store/tenants/master-key-records.ts';
import { insertMember } from '../../src/store/tenants/member-records.ts';
import { insertOrganization, insertProject } from '../../src/store/tenants/tenants.ts';

/** Ids that look like ours and can be told apart in a comparison. */
const fixedId = (prefix: string, number: number): string => `${prefix}_${String(number).padStart(32, '0')}`;

export const ID = {
  organization: fixedId('org', 1),
  otherOrganization: fixedId('org', 2),
  project: fixedId('proj', 1),
  otherProject: fixedId('proj', 2),
  owner: fixedId('mem', 1),
  admin: fixedId('mem', 2),
  developer: fixedId('mem', 3),
  foreigner: fixedId('mem', 4),
  ownerKey: fixedId('key', 1),
  developerKey: fixedId('key', 2),
  playgroundKey: fixedId('key', 3),
  platformKey: fixedId('key', 4),
  foreignKey: fixedId('key', 5),
  absent: fixedId('key', 9),
  absentRule: fixedId('rule', 9),
} as const;

export const pepper: Pepper = { id: 'test', key: Buffer.alloc(32, 7) };

export const encryptionKey: EncryptionKey = { id: 'test', key: Buffer.alloc(32, 9) };

export const auditKey = Buffer.alloc(32, 11);

/** The time at which all tests begin. */
export const START = '2026-01-31T12:00:00.000Z';
export const startMs = Date.parse(START);

export const cli: Actor = { kind: 'cli', organizationId: ID.organization };

export const actorWith = (role: Role, memberId: string): Actor => ({
  kind: 'master_key',
  masterKeyId: fixedId('mkey', 1),
  organizationId: ID.organization,
  memberId,
  role,
});

export const owner = actorWith('owner', ID.owner);
export const admin = actorWith('admin', ID.admin);
export const developer = actorWith('developer', ID.developer);

export const catalog = createCatalog({ sandbox: true, upstreams: [], clock: new ManualClock(START) });

function newSecret(kind: SecretKind): { token: string; stored: StoredSecret } {
  const token = generateSecret(kind);
  return { token, stored: { secretHash: hashSecret(token, pepper), pepperId: pepper.id, mask: maskSecret(token) } };
}

export interface MasterTokens {
  readonly owner: string;
  readonly admin: string;
  readonly developer: string;
  readonly foreigner: string;
}

/**
 * Two organizations. The first has an owner, an admin and a developer with a master key each, and four keys: one of the
 * owner, three of the developer (regular, playground, platform). The second has an owner with a master key and a key.
 */
export function seedTenants(db: Database): MasterTokens {
  const member = (id: string, organizationId: string, role: Role, number: number): string => {
    const email = `${id === ID.foreigner ? 'foreigner' : role}@example.com`;
    insertMember(db, { id, organizationId, email, name: null, role, passwordHash: null }, startMs);
    const { token, stored } = newSecret('master');
    const master = { id: fixedId('mkey', number), organizationId, memberId: id, description: role, ...stored };
    insertMasterKey(db, master, startMs);
    return token;
  };
  for (const [organizationId, projectId] of [
    [ID.organization, ID.project],
    [ID.otherOrganization, ID.otherProject],
  ] as const) {
    insertOrganization(db, { id: organizationId, name: 'Example' }, startMs);
    insertProject(db, { id: projectId, organizationId, name: 'Main' }, startMs);
  }
  const tokens = {
    owner: member(ID.owner, ID.organization, 'owner', 1),
    admin: member(ID.admin, ID.organization, 'admin', 2),
    developer: member(ID.developer, ID.organization, 'developer', 3),
    foreigner: member(ID.foreigner, ID.otherOrganization, 'owner', 4),
  };
  addKey(db, ID.ownerKey, { createdBy: ID.owner, description: "The owner's" });
  addKey(db, ID.developerKey, { createdBy: ID.developer, description: "The developer's" });
  addKey(db, ID.playgroundKey, { createdBy: ID.developer, kind: 'playground' });
  addKey(db, ID.platformKey, { createdBy: ID.developer, kind: 'platform_secret' });
  addKey(db, ID.foreignKey, {
    createdBy: ID.foreigner,
    organizationId: ID.otherOrganization,
    projectId: ID.otherProject,
  });
  // So that the audit log begins with what a test does.
  db.stateWatch?.take();
  return tokens;
}

function addKey(db: Database, id: string, key: Partial<NewKey> & { createdBy: string }): void {
  insertKey(
    db,
    {
      ...newSecret('gateway').stored,
      mask: 'pcl_abcd…wxyz',
      id,
      organizationId: ID.organization,
      projectId: ID.project,
      description: '',
      kind: 'regular',
      expiresAt: null,
      usageLimit: null,
      periodUsageLimit: null,
      periodUsageDurationValue: null,
      periodUsageDurationUnit: null,
      ...key,
    },
    startMs,
  );
}

/** A database in memory with both organizations. */
export function seededDatabase(): Database {
  const db = openDatabase(':memory:', { create: true, auditKey });
  db.transaction(() => seedTenants(db));
  return db;
}

/** The answer with the ids and secrets that only this run has replaced, so that it can be compared whole. */
export function masked(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/"(key|mkey|rule|pkey|prov|model|proj|mem|grp|inv|org|aud)_01[0-9a-f]{30}"/g, '"$1_new"')
    .replace(/"(pcl|pclm|pcli|sk)_[0-9A-Za-z]{46}"/g, '"$1_secret"')
    .replace(/"(pcl|pclm|pcli|sk)_[0-9A-Za-z]{4}…[0-9A-Za-z]{4}"/g, '"$1_abcd…wxyz"');
  return JSON.parse(text);
}
