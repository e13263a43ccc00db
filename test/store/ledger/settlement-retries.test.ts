// Settlements that the database cannot take at first: what a call cost is known only to the process that made it.
import BetterSqlite3 from 'better-sqlite3';
import { expect, onTestFinished, test, vi } from 'vitest';
import { build } from '../../../src/store/db/sql.ts';
import { StoreUnavailable } from '../../../src/store/db/sqlite-file.ts';
import { createStore, SettlementRetries, type Store } from '../../../src/store/store.ts';
import { getKey, insertKey } from '../../../src/store/tenants/key-records.ts';
import { costing, newCall, newDecision, newKey, settlement, storeWithTenant } from '../fixture.ts';

const UNAVAILABLE = { status: 503, code: 'overloaded' };

/** An open call that holds back 100, another connection's lock, and what the ledger then says. */
async function lockedCall() {
  const { store, tenant, path, clock } = await storeWithTenant({ busyTimeoutMs: 1 });
  const key = newKey(tenant, { usageLimit: 1000n });
  await store.write((db, now) => insertKey(db, key, now));
  const call = await store.openCall(newCall(tenant, { keyId: key.id }), newDecision(), costing(100n));
  const other = new BetterSqlite3(path);
  onTestFinished(() => {
    other.close();
  });
  other.exec('BEGIN IMMEDIATE');
  const ledger = (from: Store = store) =>
    from.read((db) => {
      const row = db.get(build.selectFrom('calls').select(['state', 'cost']).where('id', '=', call.callId));
      const { usage, reserved } = getKey(db, tenant.organizationId, key.id);
      return [row?.state, row?.cost, usage, reserved];
    });
  return { store, call, ledger, release: () => other.exec('ROLLBACK'), reopen: () => createStore({ path, clock }) };
}

test('a settlement waits for a lock that is released soon, and its caller notices nothing', async () => {
  const { store, call, ledger, release } = await lockedCall();
  const settled = store.settleCall(call, settlement({ cost: 70n }));
  await expect(store.write(() => undefined)).rejects.toMatchObject(UNAVAILABLE);
  expect(await ledger()).toEqual(['open', 0n, 0n, 100n]);
  release();
  expect(await settled).toBe(true);
  expect(await ledger()).toEqual(['settled', 70n, 70n, 0n]);
});

test('a lock that lasts is a 503 of the settlement, which is booked when the lock is released, once', async () => {
  const { store, call, ledger, release } = await lockedCall();
  await expect(store.settleCall(call, settlement({ cost: 70n }))).rejects.toMatchObject(UNAVAILABLE);
  expect(await ledger()).toEqual(['open', 0n, 0n, 100n]);
  release();
  await vi.waitFor(async () => expect(await ledger()).toEqual(['settled', 70n, 70n, 0n]), { timeout: 20_000 });
  expect(await store.settleCall(call, settlement({ cost: 5n }))).toBe(false);
  expect(await ledger()).toEqual(['settled', 70n, 70n, 0n]);
});

test('what is kept is booked when the store is closed', async () => {
  const { store, call, ledger, release, reopen } = await lockedCall();
  const settled = store.settleCall(call, settlement({ cost: 70n }));
  await expect(store.write(() => undefined)).rejects.toMatchObject(UNAVAILABLE);
  release();
  store.close();
  expect(await settled).toBe(true);
  const next = reopen();
  onTestFinished(() => next.close());
  expect(await ledger(next)).toEqual(['settled', 70n, 70n, 0n]);
});

test('what fails at the close as well throws and is left to the recovery', async () => {
  const { store, call, ledger, release, reopen } = await lockedCall();
  const settled = store.settleCall(call, settlement({ cost: 70n }));
  await expect(store.write(() => undefined)).rejects.toMatchObject(UNAVAILABLE);
  store.close();
  await expect(settled).rejects.toMatchObject(UNAVAILABLE);
  release();
  const next = reopen();
  onTestFinished(() => next.close());
  expect(await ledger(next)).toEqual(['open', 0n, 0n, 100n]);
});

test('no more is kept than there is room for, and only what the database could not take', async () => {
  const retries = new SettlementRetries(1);
  const unavailable = new StoreUnavailable(new Error('Locked.'));
  let locked = true;
  const settle = async () => {
    if (locked) throw unavailable;
    return true;
  };
  const first = retries.run(settle);
  await expect(retries.run(() => Promise.reject(new Error('A bug.')))).rejects.toThrow('A bug.');
  await expect(retries.run(settle)).rejects.toBe(unavailable);
  locked = false;
  expect(await first).toBe(true);
});
