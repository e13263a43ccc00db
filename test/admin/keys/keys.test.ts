import { beforeEach, describe, expect, it } from 'vitest';
import {
  changeKey,
  createKey,
  deleteKey,
  disableKey,
  enableKey,
  getKey,
  listKeys,
  reactivateKey,
  rollKey,
} from '../../../src/admin/keys/keys.ts';
import { createPlatformKey } from '../../../src/admin/keys/platform-keys.ts';
import { hashSecret } from '../../../src/domain/id.ts';
import { type Database, Freshness } from '../../../src/store/db/database.ts';
import { createBudgetReads, createKeyReads, type KeyReads } from '../../../src/store/tenants/key-credential.ts';
import { findKey } from '../../../src/store/tenants/key-records.ts';
import { removeMember } from '../../../src/store/tenants/member-records.ts';
import { getOrganization } from '../../../src/store/tenants/tenants.ts';
import { admin, cli, developer, ID, masked, owner, pepper, START, seededDatabase, startMs } from '../tenants.ts';

const HOUR = 3_600_000;
const write = { now: startMs, pepper };

let db: Database;

beforeEach(() => {
  db = seededDatabase();
});

function keyReads(): KeyReads {
  const freshness = new Freshness(db.connection);
  return createKeyReads(db, freshness, createBudgetReads(db, freshness));
}

const refusal = (status: number, message: string, param: string | null = null) =>
  expect.objectContaining({ status, message, param });

describe('a new key', () => {
  it('is the master key maker’s, shows its secret once, and authenticates by it', () => {
    const { key } = createKey(db, admin, { projectId: ID.project }, write);
    expect(masked(key)).toEqual({
      id: 'key_new',
      createdAt: START,
      updatedAt: START,
      description: null,
      projectId: ID.project,
      createdBy: ID.admin,
      createdByEmail: 'admin@example.com',
      kind: 'regular',
      status: 'active',
      state: 'active',
      maskedToken: 'pcl_abcd…wxyz',
      expiresAt: null,
      usageLimit: null,
      usage: '0',
      periodUsageLimit: null,
      periodUsageDurationValue: null,
      periodUsageDurationUnit: null,
      periodUsageAlignment: null,
      currentPeriodUsage: null,
      currentPeriodStartedAt: null,
      currentPeriodResetAt: null,
      lastUsedAt: null,
      previousTokenEndsAt: null,
      tags: [],
      sharesLimitsOf: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
      token: 'pcl_secret',
    });
    expect(keyReads().find(hashSecret(key.token ?? '', pepper))?.keyId).toBe(key.id);
    expect(getKey(db, admin, key.id, startMs).key).not.toHaveProperty('token');
  });

  it('has tags, sorted and without repeats, and custom policy goes by them: a change raises the rule revision', () => {
    const revision = () => getOrganization(db, ID.organization).ruleRevision;
    const { key } = createKey(db, admin, { projectId: ID.project, tags: ['team:b', 'contractor', 'team:b'] }, write);
    const read = () => keyReads().find(hashSecret(key.token ?? '', pepper))?.tags;
    expect([key.tags, read()]).toEqual([
      ['contractor', 'team:b'],
      ['contractor', 'team:b'],
    ]);
    const before = revision();
    expect(changeKey(db, admin, key.id, { description: 'CI' }, startMs).key.tags).toEqual(['contractor', 'team:b']);
    expect(revision()).toBe(before);
    expect(changeKey(db, admin, key.id, { tags: [] }, startMs).key.tags).toEqual([]);
    expect([revision(), read()]).toEqual([before + 1, []]);
  });

  it('has no tags from a developer, and none of another shape; a platform key has none', () => {
    const mine = createKey(db, developer, { projectId: ID.project, tags: [] }, write).key.id;
    const refused = refusal(403, 'Developers cannot change the tags of keys.');
    expect(() => createKey(db, developer, { projectId: ID.project, tags: ['trusted'] }, write)).toThrow(refused);
    expect(() => changeKey(db, developer, mine, { tags: [] }, startMs)).toThrow(refused);
    const must = 'must be a word or `name:value`, of small letters, digits and _ . -';
    expect(() => changeKey(db, admin, mine, { tags: ['ok', 'Not'] }, startMs)).toThrow(
      refusal(400, `/tags/1 ("Not") ${must}.`, '/tags/1'),
    );
    const { platformKey } = createPlatformKey(db, admin, { projectId: ID.project }, write);
    expect(() => changeKey(db, admin, platformKey.id, { tags: ['ci'] }, startMs)).toThrow(
      refusal(403, 'A platform key has no tags: it makes no calls.'),
    );
  });

  it('is another member’s when one is named, by id or e-mail, but a developer’s only their own', () => {
    const ownerNamed = (createdBy: string) =>
      createKey(db, admin, { projectId: ID.project, createdBy }, write).key.createdBy;
    expect([ownerNamed(ID.developer), ownerNamed('Developer@Example.com')]).toEqual([ID.developer, ID.developer]);
    expect(() => createKey(db, developer, { projectId: ID.project, createdBy: ID.owner }, write)).toThrow(
      refusal(403, 'Developers can only make keys for themselves.'),
    );
    expect(() => ownerNamed(ID.foreigner)).toThrow(refusal(404, 'There is no such member.'));
  });

  it('needs a named owner on the command line', () => {
    expect(() => createKey(db, cli, { projectId: ID.project }, write)).toThrow(
      refusal(400, '/createdBy is missing.', '/createdBy'),
    );
  });

  it('has an expiration where the caller may set one, and a limit of "0" blocks it at once', () => {
    const body = { projectId: ID.project, usageLimit: '0' };
    const { key } = createKey(db, owner, body, { ...write, expiresAt: startMs + HOUR });
    expect(key).toMatchObject({ state: 'limit_reached', usageLimit: '0', expiresAt: '2026-01-31T13:00:00.000Z' });
  });
});

describe('the list of keys', () => {
  it('shows developers their own, others all, playground keys when they are asked for, and never platform keys', () => {
    const ids = (actor: typeof admin, kind?: 'playground') =>
      listKeys(db, actor, { limit: 50, kind }, startMs).keys.map(({ id }) => id);
    expect(ids(developer)).toEqual([ID.developerKey]);
    expect(ids(admin)).toEqual([ID.developerKey, ID.ownerKey]);
    expect([ids(developer, 'playground'), ids(admin, 'playground')]).toEqual([[ID.playgroundKey], [ID.playgroundKey]]);
    expect(ids(owner, 'playground')).toEqual([ID.playgroundKey]);
  });

  it('shows no owner where they have left', () => {
    removeMember(db, ID.organization, ID.developer, startMs);
    expect(getKey(db, admin, ID.developerKey, startMs).key).toMatchObject({
      createdBy: null,
      createdByEmail: null,
      state: 'disabled',
    });
    const { keys } = listKeys(db, admin, { limit: 50 }, startMs);
    expect(keys.map(({ createdBy, createdByEmail }) => [createdBy, createdByEmail])).toEqual([
      [null, null],
      [ID.owner, 'owner@example.com'],
    ]);
  });
});

describe('a change', () => {
  it('is made whole or not at all', () => {
    const { key } = createKey(db, owner, { projectId: ID.project }, { ...write, expiresAt: startMs + HOUR });
    disableKey(db, owner, key.id, startMs);
    const before = findKey(db, ID.organization, key.id);
    const body = { description: 'new', usageLimit: '5', status: 'active' };
    expect(() => changeKey(db, owner, key.id, body, startMs + HOUR)).toThrow(
      refusal(400, 'The key has expired: reactivate it with a new expiration in the future.', '/status'),
    );
    expect(findKey(db, ID.organization, key.id)).toEqual(before);
  });

  it('keeps the window that runs when only the amount changes, and starts again with another length', () => {
    const period = { periodUsageLimit: '1', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' };
    changeKey(db, owner, ID.ownerKey, period, startMs);
    db.connection.exec(
      `UPDATE keys SET currentPeriodStartedAt = ${startMs}, currentPeriodUsage = 2000000000000 WHERE id = '${ID.ownerKey}'`,
    );
    expect(changeKey(db, owner, ID.ownerKey, { periodUsageLimit: '3' }, startMs).key).toMatchObject({
      state: 'active',
      currentPeriodUsage: '2',
      currentPeriodStartedAt: START,
      currentPeriodResetAt: '2026-02-01T12:00:00.000Z',
    });
    expect(changeKey(db, owner, ID.ownerKey, { periodUsageLimit: '1.5' }, startMs).key.state).toBe('limit_reached');
    expect(changeKey(db, owner, ID.ownerKey, { periodUsageDurationValue: 2 }, startMs).key).toMatchObject({
      state: 'active',
      currentPeriodUsage: '0',
      currentPeriodStartedAt: null,
      currentPeriodResetAt: null,
    });
  });

  it('of state goes by the table of the specification', () => {
    expect(disableKey(db, owner, ID.ownerKey, startMs).key).toMatchObject({ status: 'inactive', state: 'disabled' });
    expect(enableKey(db, owner, ID.ownerKey, startMs).key).toMatchObject({ status: 'active', state: 'active' });
    expect(deleteKey(db, owner, ID.ownerKey, startMs)).toEqual({ id: ID.ownerKey, deleted: true });
    for (const act of [getKey, disableKey, enableKey, deleteKey]) {
      expect(() => act(db, owner, ID.ownerKey, startMs)).toThrow(refusal(404, 'There is no such key.'));
    }
  });

  it('of an expired key needs a reactivation with a new expiration', () => {
    const { key } = createKey(db, owner, { projectId: ID.project }, { ...write, expiresAt: startMs + HOUR });
    const later = startMs + 2 * HOUR;
    expect(getKey(db, owner, key.id, later).key.state).toBe('expired');
    expect(() => reactivateKey(db, owner, key.id, later, later)).toThrow(
      refusal(400, 'The new expiration must lie in the future.', '/expiresAt'),
    );
    expect(reactivateKey(db, owner, key.id, later + HOUR, later).key).toMatchObject({
      state: 'active',
      expiresAt: '2026-01-31T15:00:00.000Z',
    });
  });
});

describe('rolling', () => {
  it('replaces the secret and nothing else', () => {
    const made = createKey(db, owner, { projectId: ID.project, description: 'CI', usageLimit: '5' }, write).key;
    const rolled = rollKey(db, owner, made.id, write).key;
    const { find } = keyReads();
    expect(find(hashSecret(made.token ?? '', pepper))).toBeUndefined();
    expect(find(hashSecret(rolled.token ?? '', pepper))?.keyId).toBe(made.id);
    expect({ ...rolled, token: '', maskedToken: '' }).toEqual({ ...made, token: '', maskedToken: '' });
  });

  it('is refused for playground and platform keys', () => {
    for (const id of [ID.playgroundKey, ID.platformKey]) {
      expect(() => rollKey(db, owner, id, write)).toThrow(refusal(403, 'Only a regular gateway key can be rolled.'));
    }
  });
});

describe('what a key refuses by its kind', () => {
  it('is everything for a playground key', () => {
    const refused = (action: string) => refusal(403, `A playground key cannot be ${action}.`);
    expect(() => changeKey(db, owner, ID.playgroundKey, { description: 'x' }, startMs)).toThrow(refused('renamed'));
    expect(() => changeKey(db, owner, ID.playgroundKey, { usageLimit: '1' }, startMs)).toThrow(refused('limited'));
    expect(() => disableKey(db, owner, ID.playgroundKey, startMs)).toThrow(refused('disabled'));
    expect(() => deleteKey(db, owner, ID.playgroundKey, startMs)).toThrow(refused('deleted'));
  });

  it('is limits for a platform key, which makes no calls', () => {
    expect(() => changeKey(db, owner, ID.platformKey, { usageLimit: '1' }, startMs)).toThrow(
      refusal(403, 'A platform key cannot be limited.'),
    );
  });
});
