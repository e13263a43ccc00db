import { describe, expect, test } from 'vitest';
import { disable, setLimits } from '../../../src/domain/api-key.ts';
import { newId } from '../../../src/domain/id.ts';
import { MAX_AMOUNT } from '../../../src/domain/limits.ts';
import {
  findKey,
  findPlaygroundKey,
  getKey,
  insertKey,
  type KeyFilter,
  listExpiredKeys,
  listKeys,
  updateKey,
} from '../../../src/store/tenants/key-records.ts';
import { removeMember } from '../../../src/store/tenants/member-records.ts';
import { deleteProject, updateOrganization, updateProject } from '../../../src/store/tenants/tenants.ts';
import { addTenant, costing, newCall, newDecision, newKey, START, settlement, storeWithTenant } from '../fixture.ts';

describe('the credential of a secret', () => {
  test('holds all that is needed to authenticate and to know the subjects', async () => {
    const { store, tenant } = await storeWithTenant();
    expect(await store.findKeyByHash(tenant.secretHash)).toEqual({
      secretEndsAt: null,
      keyId: tenant.keyId,
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      memberId: tenant.memberId,
      memberRole: 'owner',
      groupIds: [],
      tags: [],
      rates: [],
      plan: 'enterprise',
      ruleRevision: 0,
      cachingEnabled: true,
      cacheDurationSeconds: 60,
      budgets: [],
      kind: 'regular',
      status: 'active',
      disabledAt: null,
      deletedAt: null,
      expiresAt: null,
      usageLimit: null,
      usage: 0n,
      reserved: 0n,
      periodUsageLimit: null,
      periodUsageDurationValue: null,
      periodUsageDurationUnit: null,
      periodUsageAlignment: null,
      sharesLimitsOf: null,
      currentPeriodUsage: 0n,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: null,
    });
  });

  test('follows every change of key, project and organization at once', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, projectId, keyId } = tenant;
    await store.write((db, now) => {
      updateOrganization(db, organizationId, { plan: 'free' }, now);
      updateProject(db, organizationId, projectId, { cachingEnabled: false, cacheDurationSeconds: 600 }, now);
      const key = getKey(db, organizationId, keyId);
      const period = { limit: MAX_AMOUNT, value: 12, unit: 'month' } as const;
      updateKey(db, organizationId, keyId, setLimits(key, { usageLimit: MAX_AMOUNT, period }), now);
      updateKey(db, organizationId, keyId, disable(key, now), now);
    });
    await store.write((db, now) => updateKey(db, organizationId, keyId, { expiresAt: now + 5 }, now));
    expect(await store.findKeyByHash(tenant.secretHash)).toMatchObject({
      plan: 'free',
      cachingEnabled: false,
      cacheDurationSeconds: 600,
      status: 'inactive',
      disabledAt: START,
      expiresAt: START + 5,
      usageLimit: MAX_AMOUNT,
      periodUsageLimit: MAX_AMOUNT,
      periodUsageDurationValue: 12,
      periodUsageDurationUnit: 'month',
    });
  });

  test('with a limit tells what is held back and spent at the moment, however often it was read', async () => {
    const { store, tenant } = await storeWithTenant();
    const key = newKey(tenant, { usageLimit: 100n });
    await store.write((db, now) => insertKey(db, key, now));
    const sums = async () => {
      const { usage, reserved } = (await store.findKeyByHash(key.secretHash)) ?? {};
      return { usage, reserved };
    };
    const seen = [await sums()];
    const call = await store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(9n));
    seen.push(await sums());
    await store.settleCall(call, settlement({ cost: 4n }));
    seen.push(await sums());
    expect(seen).toEqual([
      { usage: 0n, reserved: 0n },
      { usage: 0n, reserved: 9n },
      { usage: 4n, reserved: 0n },
    ]);
  });

  test('of an unknown secret is none', async () => {
    const { store } = await storeWithTenant();
    expect(await store.findKeyByHash('unknown')).toBeUndefined();
  });

  test('rolling: the old secret is unknown, the new one is the same key', async () => {
    const { store, tenant } = await storeWithTenant();
    const secret = { secretHash: 'rolled', pepperId: 'newer', mask: 'pcl_new…' };
    await store.write((db, now) => updateKey(db, tenant.organizationId, tenant.keyId, secret, now));
    expect(await store.findKeyByHash(tenant.secretHash)).toBeUndefined();
    expect(await store.findKeyByHash('rolled')).toMatchObject({ keyId: tenant.keyId });
  });

  test('of a removed member has no owner and is disabled', async () => {
    const { store, tenant } = await storeWithTenant();
    await store.write((db, now) => removeMember(db, tenant.organizationId, tenant.memberId, now));
    expect(await store.findKeyByHash(tenant.secretHash)).toMatchObject({
      memberId: undefined,
      memberRole: undefined,
      status: 'inactive',
      disabledAt: START,
    });
  });

  test('of a deleted project is none', async () => {
    const { store, tenant } = await storeWithTenant();
    await store.write((db, now) => deleteProject(db, tenant.organizationId, tenant.projectId, now));
    expect(await store.findKeyByHash(tenant.secretHash)).toBeUndefined();
  });
});

describe('keys', () => {
  test('are read back whole', async () => {
    const { store, tenant } = await storeWithTenant();
    const key = newKey(tenant, {
      expiresAt: START + 60_000,
      usageLimit: 9_007_199_254_740_993n,
      periodUsageLimit: 7n,
      periodUsageDurationValue: 2,
      periodUsageDurationUnit: 'week',
    });
    const written = await store.write((db, now) => insertKey(db, key, now));
    expect(written).toEqual({
      id: key.id,
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      createdBy: tenant.memberId,
      description: 'Another',
      mask: 'pcl_abcd…wxyz',
      kind: 'regular',
      status: 'active',
      disabledAt: null,
      deletedAt: null,
      expiresAt: START + 60_000,
      usageLimit: 9_007_199_254_740_993n,
      usage: 0n,
      reserved: 0n,
      periodUsageLimit: 7n,
      periodUsageDurationValue: 2,
      periodUsageDurationUnit: 'week',
      periodUsageAlignment: null,
      limitedBySelf: 0,
      sharesLimitsOf: null,
      currentPeriodUsage: 0n,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: null,
      lastUsedAt: null,
      previousSecretEndsAt: null,
      tagsJson: '[]',
      requestsPerMinute: null,
      tokensPerMinute: null,
      createdAt: START,
      updatedAt: START,
    });
    expect(await store.read((db) => findKey(db, tenant.organizationId, key.id))).toEqual(written);
  });

  test('of another organization and deleted ones are 404', async () => {
    const { store, tenant } = await storeWithTenant();
    const other = await addTenant(store);
    const missing = expect.objectContaining({ status: 404, code: 'not_found' });
    await expect(store.read((db) => getKey(db, other.organizationId, tenant.keyId))).rejects.toEqual(missing);
    const rename = store.write((db, now) =>
      updateKey(db, other.organizationId, tenant.keyId, { description: 'Mine' }, now),
    );
    await expect(rename).rejects.toEqual(missing);
    await store.write((db, now) => updateKey(db, tenant.organizationId, tenant.keyId, { deletedAt: now }, now));
    await expect(store.read((db) => getKey(db, tenant.organizationId, tenant.keyId))).rejects.toEqual(missing);
  });

  test('are listed newest first, page by page, by project and owner, of one organization only', async () => {
    const { store, tenant } = await storeWithTenant();
    await addTenant(store);
    const ids = [tenant.keyId];
    for (let i = 1; i <= 4; i++) {
      const key = newKey(tenant, { id: `key_${String(i).padStart(32, 'f')}` });
      await store.write((db, now) => insertKey(db, key, now));
      ids.unshift(key.id);
    }
    await store.write((db, now) => updateKey(db, tenant.organizationId, ids[1] ?? '', { deletedAt: now }, now));
    const list = (filter: Partial<KeyFilter>, limit: number, cursor?: string) =>
      store.read((db) => listKeys(db, tenant.organizationId, { kind: 'regular', ...filter }, { limit, cursor }));
    const first = await list({ projectId: tenant.projectId, createdBy: tenant.memberId }, 2);
    const second = await list({}, 2, first.nextCursor ?? '');
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([ids[0], ids[2], ids[3], ids[4]]);
    expect(second.nextCursor).toBeNull();
    expect((await list({ projectId: newId('proj') }, 2)).items).toEqual([]);
    expect((await list({ createdBy: newId('mem') }, 2)).items).toEqual([]);
    expect((await list({ kind: 'platform_secret' }, 2)).items).toEqual([]);
  });

  test.each(['nonsense', '', "' OR 1=1"])('a cursor that no list gave (%j) is 400', async (cursor) => {
    const { store, tenant } = await storeWithTenant();
    await expect(
      store.read((db) => listKeys(db, tenant.organizationId, { kind: 'regular' }, { limit: 2, cursor })),
    ).rejects.toMatchObject({ status: 400, param: '/cursor' });
  });

  test('a member has one playground key in a project', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, memberId, projectId } = tenant;
    const key = await store.read((db) => findPlaygroundKey(db, organizationId, memberId, projectId));
    expect(key).toMatchObject({ kind: 'playground', createdBy: memberId, projectId });
    const again = store.write((db, now) => insertKey(db, newKey(tenant, { kind: 'playground' }), now));
    await expect(again).rejects.toThrow('UNIQUE');
  });

  test('the three period fields come together or not at all', async () => {
    const { store, tenant } = await storeWithTenant();
    const key = newKey(tenant, { periodUsageLimit: 5n });
    await expect(store.write((db, now) => insertKey(db, key, now))).rejects.toThrow('CHECK');
  });

  test('changing the length of the window forgets what was spent and held back in the old one', async () => {
    const { store, tenant } = await storeWithTenant();
    const key = newKey(tenant, { periodUsageLimit: 100n, periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' });
    await store.write((db, now) => insertKey(db, key, now));
    const call = () => store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(9n));
    await store.settleCall(await call(), settlement({ cost: 4n }));
    const open = await call();
    const period = { limit: 100n, value: 2, unit: 'day' } as const;
    const changed = await store.write((db, now) => {
      const changes = setLimits(getKey(db, tenant.organizationId, key.id), { usageLimit: null, period });
      return updateKey(db, tenant.organizationId, key.id, changes, now);
    });
    expect(changed).toMatchObject({
      usage: 4n,
      reserved: 9n,
      currentPeriodUsage: 0n,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: null,
    });
    await store.settleCall(open, settlement({ cost: 5n }));
    expect(await store.read((db) => getKey(db, tenant.organizationId, key.id))).toMatchObject({
      usage: 9n,
      reserved: 0n,
      currentPeriodUsage: 0n,
    });
  });

  test('those whose TTL has passed are listed until they are marked inactive, the longest expired first', async () => {
    const { store, clock, tenant } = await storeWithTenant();
    const expiring = (after: number) => newKey(tenant, { expiresAt: START + after });
    const [second, first, later] = [expiring(10), expiring(9), expiring(11)];
    await store.write((db, now) => [second, first, later].map((key) => insertKey(db, key, now)));
    clock.advance(10);
    const listed = (limit: number) => store.read((db) => listExpiredKeys(db, clock.now(), limit).map(({ id }) => id));
    expect([await listed(5), await listed(1)]).toEqual([[first.id, second.id], [first.id]]);
    await store.write((db, now) => updateKey(db, tenant.organizationId, first.id, { status: 'inactive' }, now));
    expect(await listed(5)).toEqual([second.id]);
  });
});
