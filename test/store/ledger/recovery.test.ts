import { expect, test } from 'vitest';
import { build } from '../../../src/store/db/sql.ts';
import { createStore } from '../../../src/store/store.ts';
import { getKey, insertKey } from '../../../src/store/tenants/key-records.ts';
import { costing, newCall, newDecision, newKey, START, settlement, storeWithTenant } from '../fixture.ts';

test('what a crash left open is booked at its reservation, in its window, and marked recovered, once', async () => {
  const { store, clock, path, tenant } = await storeWithTenant();
  const key = newKey(tenant, { periodUsageLimit: 1000n, periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' });
  await store.write((db, now) => insertKey(db, key, now));
  const settled = await store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(5n));
  await store.settleCall(settled, settlement({ cost: 4n }));
  const reserved = await store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(70n));
  const unreserved = await store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing());

  clock.advance(60_000);
  const next = createStore({ path, clock });
  try {
    expect([await next.recoverOpenCalls(), await next.recoverOpenCalls()]).toEqual([2, 0]);
    const rows = await next.read((db) =>
      db.all(build.selectFrom('calls').select(['id', 'state', 'cost', 'settledAt']).orderBy('createdAt')),
    );
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    expect(rows.sort(byId)).toEqual(
      [
        { id: settled.callId, state: 'settled', cost: 4n, settledAt: START },
        { id: reserved.callId, state: 'recovered', cost: 70n, settledAt: START + 60_000 },
        { id: unreserved.callId, state: 'recovered', cost: 0n, settledAt: START + 60_000 },
      ].sort(byId),
    );
    expect(await next.read((db) => getKey(db, tenant.organizationId, key.id))).toMatchObject({
      usage: 74n,
      currentPeriodUsage: 74n,
      reserved: 0n,
      currentPeriodReserved: 0n,
    });
    expect(await store.settleCall(reserved, settlement())).toBe(false);
  } finally {
    next.close();
  }
});

test('a call with a key that shares limits is recovered there as well, in their window', async () => {
  const { store, clock, path, tenant } = await storeWithTenant();
  const day = { periodUsageLimit: 1000n, periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' } as const;
  const limited = newKey(tenant, day);
  const sharing = newKey(tenant, { sharesLimitsOf: limited.id });
  await store.write((db, now) => [insertKey(db, limited, now), insertKey(db, sharing, now)]);
  const call = await store.openCall(newCall(tenant, { keyId: sharing.id }), newDecision(), costing(70n));

  const next = createStore({ path, clock });
  try {
    const sums = (id: string) => next.read((db) => getKey(db, tenant.organizationId, id));
    expect(await sums(limited.id)).toMatchObject({ usage: 0n, reserved: 70n, currentPeriodReserved: 70n });
    expect(await next.recoverOpenCalls()).toBe(1);
    const booked = { usage: 70n, reserved: 0n, currentPeriodReserved: 0n };
    expect(await sums(limited.id)).toMatchObject({ ...booked, currentPeriodUsage: 70n });
    expect(await sums(sharing.id)).toMatchObject({ ...booked, currentPeriodUsage: 0n });
    expect(await store.settleCall(call, settlement())).toBe(false);
  } finally {
    next.close();
  }
});

test('a call that stays open while thousands come and go is found by the recovery, and so is one opened after them', async () => {
  const { store, clock, path, tenant } = await storeWithTenant();
  const open = () => store.openCall(newCall(tenant), newDecision(), costing());
  const busy = async (): Promise<void> => {
    const opened = await Promise.all(Array.from({ length: 1500 }, open));
    await Promise.all(opened.map((call) => store.settleCall(call, settlement())));
  };
  const mark = () => store.read((db) => db.get(build.selectFrom('ledger_mark').select('openFrom'))?.openFrom);

  await busy();
  await busy();
  const passed = await mark();
  const first = await open();
  await busy();
  await busy();
  const last = await open();
  expect(passed).toBeGreaterThan(0);
  expect(await mark()).toBe(first.number);

  store.close();
  const next = createStore({ path, clock });
  try {
    expect([await next.recoverOpenCalls(), await next.recoverOpenCalls()]).toEqual([2, 0]);
    const recovered = build.selectFrom('calls').select('id').where('state', '=', 'recovered').orderBy('number');
    expect(await next.read((db) => db.all(recovered))).toEqual([{ id: first.callId }, { id: last.callId }]);
  } finally {
    next.close();
  }
});
