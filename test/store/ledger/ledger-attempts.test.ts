// Another attempt of an open call: what the failed ones cost is held back besides the reservation (src/admin/README.md, "hard
// cap").
import { describe, expect, test } from 'vitest';
import { build } from '../../../src/store/db/sql.ts';
import { getBudget, setBudget } from '../../../src/store/tenants/budget-records.ts';
import { insertKey, type NewKey } from '../../../src/store/tenants/key-records.ts';
import { costing, newCall, newDecision, newKey, settlement, storeWithTenant } from '../fixture.ts';

/** A key with limits of its own, and a call of it that holds 100 back. */
async function openedCall(limits: Partial<NewKey>) {
  const { store, tenant } = await storeWithTenant();
  const key = newKey(tenant, limits);
  await store.write((db, now) => insertKey(db, key, now));
  const open = (cost: bigint) => store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(cost));
  const sums = () =>
    store.read((db) =>
      db.get(
        build
          .selectFrom('keys')
          .select(['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved'])
          .where('id', '=', key.id),
      ),
    );
  const change = (columns: object) =>
    store.write((db) => db.run(build.updateTable('keys').set(columns).where('id', '=', key.id)));
  return { store, tenant, key, open, sums, change, call: await open(100n) };
}

const HOURLY = { periodUsageLimit: 500n, periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' } as const;

describe('before another attempt', () => {
  test('what was spent is held back too, once, in the key and its window; the settlement frees all of it', async () => {
    const { store, call, sums } = await openedCall({ usageLimit: 1000n, ...HOURLY });

    expect(await store.continueCall(call, 30n)).toBe(true);
    expect(await store.continueCall(call, 30n)).toBe(true);
    expect(await store.continueCall(call, 70n)).toBe(true);
    expect(await sums()).toMatchObject({ usage: 0n, reserved: 170n, currentPeriodReserved: 170n });

    await store.settleCall(call, settlement({ cost: 165n }));
    expect(await sums()).toEqual({
      usage: 165n,
      reserved: 0n,
      currentPeriodUsage: 165n,
      currentPeriodReserved: 0n,
    });
  });

  test('nothing more is held back where a limit has no room for it, and the call keeps what it has', async () => {
    const { store, call, open, sums } = await openedCall({ usageLimit: 200n });
    await open(80n);

    expect(await store.continueCall(call, 21n)).toBe(false);
    expect(await sums()).toMatchObject({ reserved: 180n });
    await store.settleCall(call, settlement({ cost: 21n }));
    expect(await sums()).toMatchObject({ usage: 21n, reserved: 80n });
  });

  test('the budgets hold it back as well', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, memberId: subjectId } = tenant;
    const owner = { organizationId, scope: 'member', subjectId } as const;
    await store.write((db) => setBudget(db, owner, { usageLimit: 150n, period: null }));
    const call = await store.openCall(newCall(tenant), newDecision(), costing(100n));

    expect(await store.continueCall(call, 51n)).toBe(false);
    expect(await store.continueCall(call, 50n)).toBe(true);
    expect(await store.read((db) => getBudget(db, owner))).toMatchObject({ usage: 0n, reserved: 150n });
    await store.settleCall(call, settlement({ cost: 120n }));
    expect(await store.read((db) => getBudget(db, owner))).toMatchObject({ usage: 120n, reserved: 0n });
  });

  test('a crash books what was held back in all', async () => {
    const { store, call, sums } = await openedCall({ usageLimit: 1000n });
    await store.continueCall(call, 30n);

    await store.recoverOpenCalls();

    expect(await sums()).toMatchObject({ usage: 130n, reserved: 0n });
  });

  test('a key without a limit holds nothing back', async () => {
    const { store, call, sums } = await openedCall({});

    expect(await store.continueCall(call, 30n)).toBe(true);
    expect(await sums()).toMatchObject({ reserved: 0n });
  });

  test.each([
    ['disabled', { disabledAt: 1 }, 'api_key_disabled'],
    ['deleted', { deletedAt: 1 }, 'invalid_api_key'],
    ['expired', { expiresAt: 1 }, 'api_key_expired'],
    ['left without a limit to spend', { usageLimit: 0n }, 'usage_limit_reached'],
  ])('a key that was %s meanwhile is refused', async (_, columns, code) => {
    const { store, call, change } = await openedCall({ usageLimit: 1000n });
    await change(columns);

    await expect(store.continueCall(call, 0n)).rejects.toMatchObject({ status: 401, code });
  });

  test('a key whose project was deleted or whose owner has left is refused', async () => {
    const { store, tenant, call } = await openedCall({ usageLimit: 1000n });
    const mark = (table: 'members' | 'projects', columns: object, id: string) =>
      store.write((db) => db.run(build.updateTable(table).set(columns).where('id', '=', id)));

    await mark('members', { removedAt: 1 }, tenant.memberId);
    await expect(store.continueCall(call, 0n)).rejects.toMatchObject({ code: 'api_key_disabled' });
    await mark('projects', { deletedAt: 1 }, tenant.projectId);
    await expect(store.continueCall(call, 0n)).rejects.toMatchObject({ code: 'invalid_api_key' });
  });
});
