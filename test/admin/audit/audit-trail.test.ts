// Every function of src/admin that writes leaves an entry in the audit log, and none of them a secret.
import { readdirSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/admin/audit/audit.ts';
import { applyFolder } from '../../../src/admin/folder/apply-folder.ts';
import { readFolderPlan } from '../../../src/admin/folder/plan-folder.ts';
import {
  changeKey,
  changeKeyEnd,
  createKey,
  deleteKey,
  disableKey,
  enableKey,
  reactivateKey,
  rollKey,
} from '../../../src/admin/keys/keys.ts';
import { changeMasterKey, createMasterKey, deleteMasterKey } from '../../../src/admin/keys/master-keys.ts';
import {
  allowApplication,
  endApplication,
  endDueGrants,
  endGrant,
  endGrantsFrom,
  endGrantsOfOldSecret,
  endRolledGrants,
  givesAccess,
} from '../../../src/admin/keys/oauth-grants.ts';
import { createPlatformKey, deletePlatformKey } from '../../../src/admin/keys/platform-keys.ts';
import { changeAlias, createAlias, deleteAlias, removeAliasesOf } from '../../../src/admin/providers/aliases.ts';
import { changeCustomModel, createCustomModel, deleteCustomModel } from '../../../src/admin/providers/custom-models.ts';
import {
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
} from '../../../src/admin/providers/custom-providers.ts';
import { changeProviderKey, createProviderKey, deleteProviderKey } from '../../../src/admin/providers/provider-keys.ts';
import { changeTagSet, createTagSet, deleteTagSet, removeTagsOf } from '../../../src/admin/providers/tag-sets.ts';
import { changeGroup, createGroup, deleteGroup } from '../../../src/admin/rules/groups.ts';
import { changeRule, createRule, deleteRule } from '../../../src/admin/rules/iam-rules.ts';
import type { RuleOwner } from '../../../src/admin/rules/rule-owner.ts';
import { acceptInvitation } from '../../../src/admin/sign-in/accept-invitation.ts';
import { addPasskey, removePasskey } from '../../../src/admin/sign-in/passkeys.ts';
import { endOtherSessions, endSession, startSession } from '../../../src/admin/sign-in/sessions.ts';
import { setPassword } from '../../../src/admin/sign-in/sign-in.ts';
import { createSignInLink, firstRun, useSignInLink } from '../../../src/admin/sign-in/sign-in-links.ts';
import { changeBudget } from '../../../src/admin/tenants/budgets.ts';
import { createInvitation, revokeInvitation } from '../../../src/admin/tenants/invitations.ts';
import { addMember, changeMember, removeMember } from '../../../src/admin/tenants/members.ts';
import { changeOrganization, createOrganization } from '../../../src/admin/tenants/organizations.ts';
import { changeProject, createProject, deleteProject } from '../../../src/admin/tenants/projects.ts';
import { SECRET_PREFIX } from '../../../src/domain/id.ts';
import type { AuditRecord } from '../../../src/generated/types.ts';
import { verifyAuditChain } from '../../../src/store/audit/audit-entries.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import {
  actorWith,
  auditKey,
  catalog,
  cli,
  encryptionKey,
  ID,
  masked,
  owner,
  pepper,
  START,
  seededDatabase,
  startMs,
} from '../tenants.ts';

const now = startMs;
const secretWrite = { now, pepper };
const ruleWrite = { now, catalog, trustedProxies: undefined };
const providerWrite = { now, catalog, allowPrivateUpstreams: [] };
const providerKeyWrite = { ...providerWrite, encryptionKey };
const PROVIDER_SECRET = 'sk-the-very-secret-0123456789-tail';
const PASSWORD_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const NEXT_PROVIDER_SECRET = 'sk-the-next-secret-0123456789-tail';
const ORGANIZATION: RuleOwner = { kind: 'organization' };
const DENY = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };

const addRule = (db: Database) => createRule(db, owner, ORGANIZATION, DENY, ruleWrite).rule.id;
const addProvider = (db: Database) =>
  createCustomProvider(db, owner, { name: 'acme', baseUrl: 'https://models.example/v1' }, providerWrite).customProvider
    .id;
const addModel = (db: Database) =>
  createCustomModel(db, owner, { customProviderId: addProvider(db), model: 'large' }, now).customModel.id;
const addTags = (db: Database, target = 'sandbox-free') =>
  createTagSet(db, owner, { target, tags: ['team:research'] }, ruleWrite).tagSet.id;
const addAlias = (db: Database, projectId: string | null = null) =>
  createAlias(db, owner, { name: 'fast', projectId, models: ['sandbox-free'] }, ruleWrite).alias.id;
const addProviderKey = (db: Database, provider = 'openai') =>
  createProviderKey(db, owner, { provider, label: 'Main', token: PROVIDER_SECRET }, providerKeyWrite).providerKey.id;
const invite = (db: Database) =>
  createInvitation(db, owner, { email: 'new@example.com', role: 'developer' }, secretWrite).invitation;
const addMasterKey = (db: Database) => createMasterKey(db, owner, { description: 'Second' }, secretWrite).masterKey.id;
const addExpired = (db: Database) =>
  createKey(db, owner, { projectId: ID.project }, { ...secretWrite, expiresAt: now - 1 }).key.id;

const person = { kind: 'person', organizationId: ID.organization, memberId: ID.owner } as const;
const PASSKEY = {
  rpId: 'localhost',
  credentialId: 'the-credential',
  publicKey: 'the-public-key',
  counter: 0,
  transports: ['internal'],
  label: 'Laptop',
};
const begin = (db: Database) =>
  startSession(db, { organizationId: ID.organization, id: ID.owner }, 'link', secretWrite);

const GRANT = { id: 'grant', keyId: ID.ownerKey, clientId: 'client', clientName: 'Inspector' };

const allow = (db: Database) => allowApplication(db, person, GRANT, now);

/** Of a key whose old secret made it, and ends now. */
const allowUntilNow = (db: Database): string =>
  allowApplication(db, person, { ...GRANT, secretEndsAt: now }, now).keyId;

interface Write {
  /** Runs before, and is not looked at. */
  readonly given?: (db: Database) => string;
  readonly write: (db: Database, id: string) => unknown;
  /** What the entries that it leaves say was done, oldest first. */
  readonly actions: readonly string[];
}

/** Each exported function that writes, by its name. */
const WRITES: Readonly<Record<string, Write>> = {
  createKey: { write: (db) => createKey(db, owner, { projectId: ID.project }, secretWrite), actions: ['key.create'] },
  changeKey: {
    write: (db) => changeKey(db, owner, ID.ownerKey, { description: 'New', usageLimit: '5' }, now),
    actions: ['key.update'],
  },
  disableKey: { write: (db) => disableKey(db, owner, ID.ownerKey, now), actions: ['key.disable'] },
  enableKey: { write: (db) => enableKey(db, owner, ID.ownerKey, now), actions: ['key.enable'] },
  reactivateKey: {
    given: addExpired,
    write: (db, id) => reactivateKey(db, owner, id, now + 1000, now),
    actions: ['key.reactivate'],
  },
  changeKeyEnd: { write: (db) => changeKeyEnd(db, owner, ID.ownerKey, now + 1000, now), actions: ['key.update'] },
  rollKey: { write: (db) => rollKey(db, owner, ID.ownerKey, secretWrite), actions: ['key.roll'] },
  deleteKey: { write: (db) => deleteKey(db, owner, ID.ownerKey, now), actions: ['key.delete'] },
  createPlatformKey: {
    write: (db) => createPlatformKey(db, owner, { projectId: ID.project }, secretWrite),
    actions: ['key.create'],
  },
  deletePlatformKey: { write: (db) => deletePlatformKey(db, owner, ID.platformKey, now), actions: ['key.delete'] },
  createMasterKey: {
    write: (db) => createMasterKey(db, owner, { description: 'Second' }, secretWrite),
    actions: ['master_key.create'],
  },
  changeMasterKey: {
    given: addMasterKey,
    write: (db, id) => changeMasterKey(db, owner, id, { description: 'Renamed' }, now),
    actions: ['master_key.update'],
  },
  deleteMasterKey: {
    given: addMasterKey,
    write: (db, id) => deleteMasterKey(db, owner, id, now),
    actions: ['master_key.delete'],
  },
  createRule: { write: (db) => createRule(db, owner, ORGANIZATION, DENY, ruleWrite), actions: ['rule.create'] },
  changeRule: {
    given: addRule,
    write: (db, id) => changeRule(db, owner, ORGANIZATION, id, { status: 'inactive' }, ruleWrite),
    actions: ['rule.update'],
  },
  deleteRule: {
    given: addRule,
    write: (db, id) => deleteRule(db, owner, ORGANIZATION, id, false, now),
    actions: ['rule.delete'],
  },
  applyFolder: {
    given: addRule,
    write: (db) => {
      const folder = { organization: { rules: { first: DENY, second: { ...DENY, mode: 'report' } } } };
      const plan = readFolderPlan(db, owner, folder, { prune: true }, ruleWrite);
      return applyFolder(db, owner, plan, { revision: 'abc', now });
    },
    actions: ['rule.update', 'rule.create', 'policy.apply'],
  },
  createProviderKey: { write: (db) => addProviderKey(db), actions: ['provider_key.create'] },
  changeProviderKey: {
    given: addProviderKey,
    write: (db, id) => changeProviderKey(db, owner, id, { token: NEXT_PROVIDER_SECRET }, providerKeyWrite),
    actions: ['provider_key.update'],
  },
  deleteProviderKey: {
    given: addProviderKey,
    write: (db, id) => deleteProviderKey(db, owner, id, now),
    actions: ['provider_key.delete'],
  },
  createCustomProvider: { write: addProvider, actions: ['custom_provider.create'] },
  changeCustomProvider: {
    given: addProvider,
    write: (db, id) => changeCustomProvider(db, owner, id, { keyless: true }, providerWrite),
    actions: ['custom_provider.update'],
  },
  deleteCustomProvider: {
    given: (db) => {
      const id = addProvider(db);
      createCustomModel(db, owner, { customProviderId: id, model: 'large' }, now);
      addProviderKey(db, 'custom:acme');
      addTags(db, 'acme/*');
      return id;
    },
    write: (db, id) => deleteCustomProvider(db, owner, id, now),
    actions: ['custom_model.delete', 'provider_key.delete', 'tag_set.delete', 'custom_provider.delete'],
  },
  createCustomModel: {
    given: addProvider,
    write: (db, id) => createCustomModel(db, owner, { customProviderId: id, model: 'large' }, now),
    actions: ['custom_model.create'],
  },
  changeCustomModel: {
    given: addModel,
    write: (db, id) => changeCustomModel(db, owner, id, { pricing: { prompt: '0.000001' } }, now),
    actions: ['custom_model.update'],
  },
  deleteCustomModel: {
    given: addModel,
    write: (db, id) => deleteCustomModel(db, owner, id, now),
    actions: ['custom_model.delete'],
  },
  createTagSet: { write: (db) => addTags(db), actions: ['tag_set.create'] },
  changeTagSet: {
    given: addTags,
    write: (db, id) => changeTagSet(db, owner, id, { tags: ['other'] }, ruleWrite),
    actions: ['tag_set.update'],
  },
  deleteTagSet: {
    given: addTags,
    write: (db, id) => deleteTagSet(db, owner, id, now),
    actions: ['tag_set.delete'],
  },
  removeTagsOf: {
    given: addTags,
    write: (db) => removeTagsOf(db, owner, (target) => target === 'sandbox-free', now),
    actions: ['tag_set.delete'],
  },
  createAlias: { write: (db) => addAlias(db), actions: ['alias.create'] },
  changeAlias: {
    given: (db) => addAlias(db),
    write: (db, id) => changeAlias(db, owner, id, { models: ['sandbox-paid'] }, ruleWrite),
    actions: ['alias.update'],
  },
  deleteAlias: {
    given: (db) => addAlias(db),
    write: (db, id) => deleteAlias(db, owner, id, now),
    actions: ['alias.delete'],
  },
  removeAliasesOf: {
    given: (db) => addAlias(db, ID.project),
    write: (db) => removeAliasesOf(db, owner, ID.project, now),
    actions: ['alias.delete'],
  },
  changeOrganization: {
    write: (db) => changeOrganization(db, owner, { plan: 'pro' }, now),
    actions: ['organization.update'],
  },
  createProject: { write: (db) => createProject(db, owner, { name: 'Second' }, now), actions: ['project.create'] },
  createGroup: { write: (db) => createGroup(db, owner, { name: 'team' }, now), actions: ['group.create'] },
  changeGroup: {
    given: (db) => createGroup(db, owner, { name: 'team' }, now).group.id,
    write: (db, id) => changeGroup(db, owner, id, { addMembers: [ID.developer] }, now),
    actions: ['group.update'],
  },
  deleteGroup: {
    given: (db) => createGroup(db, owner, { name: 'team' }, now).group.id,
    write: (db, id) => deleteGroup(db, owner, id, false, now),
    actions: ['group.delete'],
  },
  changeBudget: {
    write: (db) => changeBudget(db, owner, { kind: 'project', project: ID.project }, { usageLimit: '5' }, now),
    actions: ['budget.update'],
  },
  changeProject: {
    write: (db) => changeProject(db, owner, ID.project, { cachingEnabled: false }, now),
    actions: ['project.update'],
  },
  deleteProject: {
    given: (db) => createProject(db, owner, { name: 'Second' }, now).project.id,
    write: (db, id) => deleteProject(db, owner, id, now),
    actions: ['project.delete'],
  },
  changeMember: {
    write: (db) => changeMember(db, owner, ID.developer, { role: 'admin' }, now),
    actions: ['member.update'],
  },
  addMember: {
    write: (db) => addMember(db, owner, { email: 'ada@example.com', role: 'developer' }, now),
    actions: ['member.create'],
  },
  removeMember: { write: (db) => removeMember(db, owner, ID.developer, now), actions: ['member.remove'] },
  createInvitation: { write: invite, actions: ['invitation.create'] },
  revokeInvitation: {
    given: (db) => invite(db).id,
    write: (db, id) => revokeInvitation(db, owner, id, now),
    actions: ['invitation.revoke'],
  },
  acceptInvitation: {
    given: (db) => invite(db).token ?? '',
    write: (db, token) => acceptInvitation(db, { token }, { now, peppers: [pepper], by: 'cli' }),
    actions: ['invitation.accept', 'member.create'],
  },
  startSession: { write: begin, actions: ['session.create'] },
  endSession: {
    given: (db) => begin(db).session.id,
    write: (db, id) => endSession(db, person, id, now),
    actions: ['session.delete'],
  },
  endOtherSessions: {
    given: (db) => [begin(db), begin(db), begin(db)].map(({ session }) => session.id)[1] ?? '',
    write: (db, id) => endOtherSessions(db, person, id, now),
    actions: ['session.delete', 'session.delete'],
  },
  setPassword: {
    given: (db) => begin(db).session.id,
    write: (db) => setPassword(db, person, PASSWORD_HASH, now),
    actions: ['session.delete', 'member.set_password'],
  },
  createSignInLink: {
    write: (db) => createSignInLink(db, cli, ID.owner, secretWrite),
    actions: ['sign_in_link.create'],
  },
  useSignInLink: {
    given: (db) => createSignInLink(db, cli, ID.owner, secretWrite).token,
    write: (db, token) => useSignInLink(db, token, { now, peppers: [pepper] }),
    actions: ['sign_in_link.use'],
  },
  addPasskey: { write: (db) => addPasskey(db, person, PASSKEY, now), actions: ['passkey.create'] },
  removePasskey: {
    given: (db) => addPasskey(db, person, PASSKEY, now).id,
    write: (db, id) => removePasskey(db, person, id, now),
    actions: ['passkey.delete'],
  },
  allowApplication: { write: allow, actions: ['oauth_grant.create'] },
  endApplication: {
    given: (db) => allow(db).id,
    write: (db, id) => endApplication(db, person, id, now),
    actions: ['oauth_grant.delete'],
  },
  endGrant: {
    given: (db) => allow(db).id,
    write: (db, id) => endGrant(db, id, now),
    actions: ['oauth_grant.delete'],
  },
  endGrantsFrom: {
    given: (db) => allow(db).keyId,
    write: (db, keyId) => endGrantsFrom(db, owner, { keyId }, now),
    actions: ['oauth_grant.delete'],
  },
  endRolledGrants: {
    given: (db) => allow(db).keyId,
    write: (db, keyId) => endRolledGrants(db, owner, keyId, 'all', { oldEndsAt: now + 1, now }),
    actions: ['oauth_grant.update'],
  },
  endGrantsOfOldSecret: {
    given: allowUntilNow,
    write: (db, keyId) => endGrantsOfOldSecret(db, owner, keyId, now),
    actions: ['oauth_grant.delete'],
  },
  endDueGrants: {
    given: allowUntilNow,
    write: (db) => endDueGrants(db, now, 5),
    actions: ['oauth_grant.delete'],
  },
  givesAccess: {
    given: allowUntilNow,
    write: (db) => givesAccess(db, GRANT.id, now),
    actions: ['oauth_grant.delete'],
  },
};

const TENANT = ['organization.create', 'project.create', 'member.create', 'master_key.create'];

/** Those that are for no organization that is there already. */
const FOUNDERS: Readonly<Record<string, Write>> = {
  createOrganization: {
    write: (db) => createOrganization(db, { name: 'New', ownerEmail: 'owner@new.example' }, secretWrite),
    actions: TENANT,
  },
  firstRun: { write: (db) => firstRun(db, pepper, now), actions: [...TENANT, 'key.create', 'sign_in_link.create'] },
};

/**
 * Parts of those above. The job of `keys.ts` has a test of its own; `recordServerChange` is for the command line
 * (test/process/rotation.test.ts, backup.test.ts).
 */
const PARTS = ['addTenant', 'newMember', 'recordChange', 'recordServerChange', 'revokeInvitationsOf'];

/**
 * The first gives a member the playground key that they should have had from the start: no one made that change. The second counts how
 * often a passkey was used; the session that it begins is recorded.
 */
const UNRECORDED = ['playgroundKey', 'notePasskeyUse'];

const folder = fileURLToPath(new URL('../../../src/admin', import.meta.url));

/** The exported functions that are given a database and are not named like one that reads. */
function writers(): string[] {
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(folder, name), 'utf8'));
  const pattern = /export (?:async )?(?:function|const) (\w+)(?: = )?(?:<[^>]*>)?\(\s*db: Database/g;
  const names = sources.flatMap((source) => [...source.matchAll(pattern)].map(([, name = '']) => name));
  return names.filter((name) => !/^(get|list|view|check|read|ownerOfNewKey$|usageReport$|reportedUsage$)/.test(name));
}

const allEntries = (db: Database) => db.all(build.selectFrom('audit').selectAll().orderBy('seq'));

/** The entries that a write adds, and what it returned. */
function written({ given, write }: Write, db: Database) {
  const id = given?.(db) ?? '';
  const before = allEntries(db).length;
  const result = db.transaction(() => write(db, id));
  return { result, entries: allEntries(db).slice(before) };
}

it('the functions that write are these', () => {
  const known = [...Object.keys(WRITES), ...Object.keys(FOUNDERS), ...PARTS, ...UNRECORDED];
  expect(writers().toSorted()).toEqual(known.toSorted());
});

describe.each(Object.entries({ ...WRITES, ...FOUNDERS }))('%s', (name, write) => {
  it('leaves an entry for each thing that it changes, with both states', () => {
    const db = name === 'firstRun' ? openDatabase(':memory:', { create: true, auditKey }) : seededDatabase();
    const { entries } = written(write, db);
    expect(entries.map(({ action }) => action)).toEqual(write.actions);
    for (const entry of entries) {
      const before: unknown = JSON.parse(entry.beforeJson ?? 'null');
      const after: unknown = JSON.parse(entry.afterJson ?? 'null');
      const [type, done = ''] = entry.action.split('.');
      expect(entry.targetType).toBe(type);
      for (const state of [before, after]) if (state !== null) expect(state).toHaveProperty('id', entry.targetId);
      expect([before === null, after === null], entry.action).toEqual([
        done === 'create',
        ['delete', 'remove'].includes(done),
      ]);
    }
    expect(verifyAuditChain(db, auditKey, undefined, () => {})).toMatchObject({ fault: undefined });
  });

  it('changes nothing when the entry cannot be written', () => {
    const db = name === 'firstRun' ? openDatabase(':memory:', { create: true, auditKey }) : seededDatabase();
    const id = write.given?.(db) ?? '';
    const state = (): Buffer => db.connection.serialize();
    const before = state();
    const readOnly: Database = { ...db, auditKey: undefined };
    const attempt = (): unknown => write.write(readOnly, id);
    // The first run is part of its caller's transaction.
    expect(name === 'firstRun' ? () => db.transaction(attempt) : attempt).toThrow('without the audit key');
    // What differs is the counter of changes in the header.
    expect(before.subarray(100).equals(state().subarray(100))).toBe(true);
  });
});

/** Every text in a value that is a secret, by the names under which answers hold them. */
function secretsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === 'string' && /^(token|masterKey|gatewayKey|signInToken|secret)$/.test(name)
      ? [inner]
      : secretsIn(inner),
  );
}

it('no entry holds a secret, its hash, or what is stored of it', () => {
  const secrets = new Set([PROVIDER_SECRET, NEXT_PROVIDER_SECRET, PASSWORD_HASH, PASSKEY.publicKey]);
  const rows: string[] = [];
  for (const [name, write] of Object.entries({ ...WRITES, ...FOUNDERS })) {
    const db = name === 'firstRun' ? openDatabase(':memory:', { create: true, auditKey }) : seededDatabase();
    const { result } = written(write, db);
    for (const secret of secretsIn(result)) secrets.add(secret);
    for (const table of ['keys', 'master_keys', 'invitations', 'sessions', 'sign_in_links'] as const) {
      for (const { secretHash } of db.all(build.selectFrom(table).select('secretHash'))) secrets.add(secretHash);
    }
    for (const { ciphertext } of db.all(build.selectFrom('provider_keys').select('ciphertext'))) {
      if (ciphertext !== '') secrets.add(ciphertext);
    }
    rows.push(...allEntries(db).map((row) => JSON.stringify(row)));
  }
  // Five tokens of keys, and of an invitation, at least: the search must not be for nothing.
  const prefixes = Object.values(SECRET_PREFIX);
  const tokens = [...secrets].filter((secret) => prefixes.some((prefix) => secret.startsWith(prefix)));
  expect(tokens.length).toBeGreaterThan(5);
  const all = rows.join('\n');
  expect([...secrets].filter((secret) => all.includes(secret))).toEqual([]);
  expect(prefixes.filter((prefix) => new RegExp(`\\b${prefix}[0-9A-Za-z]{46}\\b`).test(all))).toEqual([]);
});

describe('an entry says', () => {
  const only = (db: Database): AuditRecord[] => listAudit(db, cli, { limit: 10 }).entries;

  it('who made the change, with names: a master key and its maker, or the system user of the command line', () => {
    const user = userInfo().username;
    const db = seededDatabase();
    disableKey(db, actorWith('admin', ID.admin), ID.developerKey, now);
    enableKey(db, cli, ID.developerKey, now);
    expect(only(db).map(({ action, actor }) => ({ action, actor }))).toEqual([
      { action: 'key.enable', actor: { kind: 'cli', id: user, name: user, memberId: null, memberEmail: null } },
      {
        action: 'key.disable',
        actor: {
          kind: 'master_key',
          id: `mkey_${'1'.padStart(32, '0')}`,
          name: 'owner',
          memberId: ID.admin,
          memberEmail: 'admin@example.com',
        },
      },
    ]);
  });

  it('the description of a rule next to its id (issue 12, 14)', () => {
    const db = seededDatabase();
    createRule(db, owner, { kind: 'key', key: ID.ownerKey }, { ...DENY, description: 'No GPT-5' }, ruleWrite);
    expect(only(db).map(({ target }) => masked(target))).toEqual([{ type: 'rule', id: 'rule_new', name: 'No GPT-5' }]);
  });

  it('what was, and what is, as the API shows it', () => {
    const db = seededDatabase();
    // What it reports is not part of what someone wrote.
    const { reportOnly: _, ...rule } = createRule(db, owner, { kind: 'key', key: ID.ownerKey }, DENY, ruleWrite).rule;
    changeRule(db, owner, { kind: 'key', key: ID.ownerKey }, rule.id, { mode: 'report' }, ruleWrite);
    expect(only(db).map((entry) => masked(entry))).toEqual([
      {
        id: 'aud_new',
        seq: 2,
        createdAt: START,
        actor: {
          kind: 'master_key',
          id: `mkey_${'1'.padStart(32, '0')}`,
          name: 'owner',
          memberId: ID.owner,
          memberEmail: 'owner@example.com',
        },
        action: 'rule.update',
        target: { type: 'rule', id: 'rule_new', name: null },
        before: masked(rule),
        after: masked({ ...rule, mode: 'report' }),
        hmac: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      expect.objectContaining({ seq: 1, action: 'rule.create', before: null, after: masked(rule) }),
    ]);
  });

  it('that a key was disabled or enabled also where a change of fields did it', () => {
    const db = seededDatabase();
    changeKey(db, owner, ID.ownerKey, { status: 'inactive' }, now);
    changeKey(db, owner, ID.ownerKey, { status: 'active' }, now);
    changeKey(db, owner, ID.ownerKey, { status: 'inactive', description: 'Off' }, now);
    expect(only(db).map(({ action }) => action)).toEqual(['key.update', 'key.enable', 'key.disable']);
  });

  it('nothing of what was refused', () => {
    const db = seededDatabase();
    expect(() => changeKey(db, owner, ID.ownerKey, { usageLimit: '1', nothing: 1 }, now)).toThrow();
    expect(() => rollKey(db, owner, ID.platformKey, secretWrite)).toThrow();
    expect(() => deleteKey(db, actorWith('developer', ID.developer), ID.ownerKey, now)).toThrow();
    expect(only(db)).toEqual([]);
  });
});
