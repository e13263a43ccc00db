// What keys with limits hold back: checked and reserved in one step, in both limits, whatever happens to the calls.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError, unauthorized } from '../../../src/domain/errors.ts';
import { type Bounds, isCapped, limitChanges, type NewPeriod, runningPeriod } from '../../../src/domain/limits.ts';
import { build } from '../../../src/store/db/sql.ts';
import type { OpenCall } from '../../../src/store/ledger/ledger.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { getKey, insertKey, type NewKey, updateKey } from '../../../src/store/tenants/key-records.ts';
import {
  costing,
  decisionIdOf,
  newCall,
  newDecision,
  newKey,
  notAsked,
  START,
  settlement,
  storeWithTenant,
  type Tenant,
} from '../fixture.ts';

const HOUR = 3_600_000;
const hourly = (limit: bigint) =>
  ({ periodUsageLimit: limit, periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' }) as const;

async function limited(limits: Partial<NewKey>) {
  const opened = await storeWithTenant();
  const key = newKey(opened.tenant, limits);
  await opened.store.write((db, now) => insertKey(db, key, now));
  const open = (bounds: Bounds) =>
    opened.store.openCall(newCall(opened.tenant, { keyId: key.id }), newDecision(), bounds);
  const sums = () => opened.store.read((db) => getKey(db, opened.tenant.organizationId, key.id));
  return { ...opened, keyId: key.id, open, sums };
}

const callRow = (store: Store, id: string) =>
  store.read((db) => db.get(build.selectFrom('calls').selectAll().where('id', '=', id)));

const rows = (store: Store, keyId: string) =>
  store.read((db) => db.all(build.selectFrom('calls').selectAll().where('keyId', '=', keyId)));

/** What is thrown, as the caller reads it. */
async function refusal(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    return error instanceof ApiError ? [error.status, error.code, error.message, error.headers] : error;
  }
}

describe('calls side by side', () => {
  test('never reserve more than is left: exactly as many are opened as fit, and the rest gets retry-after', async () => {
    const { open, sums, store, keyId } = await limited({ usageLimit: 1000n });

    const results = await Promise.allSettled(Array.from({ length: 64 }, () => open(costing(100n))));

    expect(results.map(({ status }) => status)).toEqual(
      Array.from(results, (_, i) => (i < 10 ? 'fulfilled' : 'rejected')),
    );
    expect(await sums()).toMatchObject({ usage: 0n, reserved: 1000n });
    expect(await refusal(open(costing(100n)))).toEqual([
      429,
      'budget_reserved',
      'This call may cost 0.0000000001 USD. The all-time usage limit of this API key leaves 0.000000001 USD, of which ' +
        '0.000000001 USD are held back for calls that are still running. Try again when they have ended.',
      { 'retry-after': '1' },
    ]);
    expect(Map.groupBy(await rows(store, keyId), ({ state }) => state).get('released')).toHaveLength(55);
  });

  test('that are refused leave a finished row each, with the decision that was made', async () => {
    const { store, tenant, keyId } = await limited({ usageLimit: 10n });
    const call = newCall(tenant, { keyId });

    await expect(store.openCall(call, newDecision(), costing(11n))).rejects.toMatchObject({ status: 401 });

    expect(await callRow(store, call.id)).toMatchObject({
      state: 'released',
      decisionId: decisionIdOf(call),
      createdAt: START,
      settledAt: START,
      reservation: 0n,
      cost: 0n,
      statusCode: 401,
      errorCode: 'usage_limit_reached',
    });
    expect(await store.read((db) => db.all(build.selectFrom('decisions').select('id')))).toEqual([
      { id: decisionIdOf(call) },
    ]);
  });
});

describe('a call that does not fit', () => {
  test('into what is left is refused, naming both, also while others hold some of it', async () => {
    const { open, store } = await limited({ usageLimit: 1000n });
    await store.settleCall(await open(costing(700n)), settlement({ cost: 600n }));
    await open(costing(300n));

    expect(await refusal(open(costing(401n)))).toEqual([
      401,
      'usage_limit_reached',
      'This call may cost 0.000000000401 USD, and the all-time usage limit of this API key leaves 0.0000000004 USD.',
      {},
    ]);
    await expect(open(costing(400n))).rejects.toMatchObject({ status: 429, code: 'budget_reserved' });
    await expect(open(costing(100n))).resolves.toMatchObject({ reservation: { amount: 100n } });
  });

  test('into the window says when that resets', async () => {
    const { open, store } = await limited(hourly(1000n));
    await store.settleCall(await open(costing(600n)), settlement({ cost: 600n }));

    expect(await refusal(open(costing(401n)))).toEqual([
      401,
      'usage_limit_reached',
      'This call may cost 0.000000000401 USD, and the recurring usage limit of this API key leaves 0.0000000004 USD. ' +
        'It resets at 2026-03-01T13:00:00.000Z.',
      {},
    ]);
  });

  test('begins no window', async () => {
    const { open, sums } = await limited(hourly(100n));

    await expect(open(costing(101n))).rejects.toMatchObject({ code: 'usage_limit_reached' });

    expect(await sums()).toMatchObject({ currentPeriodStartedAt: null });
  });

  test('anywhere is refused with the reason that was found', async () => {
    const { open } = await limited({ usageLimit: 100n });

    await expect(open({ ...costing(), least: unauthorized('usage_limit_reached', 'No price.') })).rejects.toThrow(
      'No price.',
    );
  });
});

describe('the two limits', () => {
  test('are independent: the tighter one decides, whichever it is', async () => {
    const { open, store, clock, sums } = await limited({ usageLimit: 1000n, ...hourly(600n) });
    const spend = async (cost: bigint) => store.settleCall(await open(costing(cost)), settlement({ cost }));

    await spend(500n);
    await expect(open(costing(101n))).rejects.toThrow(/recurring.* leaves 0\.0000000001 USD/);
    clock.advance(HOUR);
    await spend(450n);
    await expect(open(costing(51n))).rejects.toThrow(/all-time.* leaves 0\.00000000005 USD/);
    await spend(50n);

    expect(await sums()).toMatchObject({
      usage: 1000n,
      currentPeriodUsage: 500n,
      reserved: 0n,
      currentPeriodReserved: 0n,
    });
  });

  test('an open call of an earlier window takes no room in the next, and settles into none', async () => {
    const { open, store, clock, sums } = await limited(hourly(100n));
    const slow = await open(costing(100n));
    clock.advance(HOUR);
    const next = await open(costing(100n));
    expect(await sums()).toMatchObject({ reserved: 200n, currentPeriodReserved: 100n, currentPeriodUsage: 0n });

    await store.settleCall(slow, settlement({ cost: 90n }));
    expect(await sums()).toMatchObject({
      usage: 90n,
      reserved: 100n,
      currentPeriodReserved: 100n,
      currentPeriodUsage: 0n,
    });
    await expect(open(costing(1n))).rejects.toMatchObject({ status: 429 });
    await store.settleCall(next, settlement({ cost: 20n }));
    expect(await sums()).toMatchObject({
      usage: 110n,
      reserved: 0n,
      currentPeriodReserved: 0n,
      currentPeriodUsage: 20n,
    });
  });

  test('a window that begins in the same millisecond as the one before it is kept apart from it', async () => {
    const { open, store, tenant, keyId, sums } = await limited(hourly(100n));
    const old = await open(costing(100n));
    await store.write((db, now) =>
      updateKey(
        db,
        tenant.organizationId,
        keyId,
        { periodUsageDurationValue: 2, currentPeriodUsage: 0n, currentPeriodStartedAt: null },
        now,
      ),
    );
    const fresh = await open(costing(60n));
    expect([old.windows.periodStartedAt, fresh.windows.periodStartedAt]).toEqual([START, START + 1]);

    await store.settleCall(old, settlement({ cost: 100n }));

    expect(await sums()).toMatchObject({
      currentPeriodUsage: 0n,
      currentPeriodReserved: 60n,
      reserved: 60n,
      usage: 100n,
    });
    await expect(open(costing(41n))).rejects.toMatchObject({ status: 429 });
  });
});

describe('a call whose output can be shortened', () => {
  const upTo: Bounds = {
    least: 10n,
    within: (amount) => ({ amount: amount < 80n ? amount : 80n, maxOutputTokens: Number(amount < 80n ? amount : 80n) }),
  };

  test('gets what the open ones leave, as long as that is the least that it needs', async () => {
    const { open } = await limited({ usageLimit: 100n });

    expect((await open(upTo)).reservation).toMatchObject({ amount: 80n, maxOutputTokens: 80 });
    expect((await open(upTo)).reservation).toMatchObject({ amount: 20n, maxOutputTokens: 20 });
    await expect(open(upTo)).rejects.toMatchObject({ status: 429, code: 'budget_reserved' });
  });
});

describe('the end of a call', () => {
  test('before dispatch frees what it held, on its row', async () => {
    const { open, store, sums } = await limited({ usageLimit: 100n, ...hourly(100n) });
    const opened = await open(costing(100n));

    const release = settlement({ state: 'released', cost: 0n, statusCode: 403, errorCode: 'permission_denied' });
    expect([await store.settleCall(opened, release), await store.settleCall(opened, settlement())]).toEqual([
      true,
      false,
    ]);

    expect(await callRow(store, opened.callId)).toMatchObject({
      state: 'released',
      reservation: 100n,
      cost: 0n,
      statusCode: 403,
    });
    expect(await sums()).toMatchObject({ usage: 0n, reserved: 0n, currentPeriodUsage: 0n, currentPeriodReserved: 0n });
  });

  test('above what was held books the truth, and is reported once it is committed', async () => {
    const told: unknown[] = [];
    const { path, clock, tenant, store } = await limited({});
    store.close();
    const next = createStore({ path, clock, onOverReservation: (...call) => told.push(call) });
    const key = newKey(tenant, { usageLimit: 100n });
    await next.write((db, now) => insertKey(db, key, now));
    const open = (keyId: string) => next.openCall(newCall(tenant, { keyId }), newDecision(), costing(60n));
    const [over, exact, unlimited] = [await open(key.id), await open(tenant.keyId), await open(tenant.keyId)];

    for (const call of [over, over, exact, unlimited]) await next.settleCall(call, settlement({ cost: 130n }));

    expect(told).toEqual([[over.callId, 130n, 60n]]);
    expect(await next.read((db) => getKey(db, tenant.organizationId, key.id))).toMatchObject({
      usage: 130n,
      reserved: 0n,
    });
    next.close();
  });
});

describe('a key without a limit', () => {
  test('reserves nothing and is not asked what its calls may cost', async () => {
    const { open, sums } = await limited({});

    const opened = await open(notAsked);

    expect(opened.reservation).toBeUndefined();
    expect(await sums()).toMatchObject({ reserved: 0n });
  });

  test('that is given one is asked from the very next call on, whichever process gave it', async () => {
    const { open, store, tenant, keyId } = await limited({});
    await open(costing());

    await store.write((db, now) => updateKey(db, tenant.organizationId, keyId, { usageLimit: 50n }, now));

    expect((await open(costing(50n))).reservation).toMatchObject({ amount: 50n, maxOutputTokens: null });
    await expect(open(costing(1n))).rejects.toMatchObject({ code: 'budget_reserved' });
  });
});

type Step =
  | { readonly kind: 'open'; readonly cost: bigint; readonly calls: number }
  | { readonly kind: 'end'; readonly which: number; readonly part: number; readonly released: boolean }
  | { readonly kind: 'wait'; readonly minutes: number }
  | { readonly kind: 'crash' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('open'),
      cost: fc.bigInt(0n, 400n),
      calls: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('end'),
      which: fc.nat(),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      released: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait'), minutes: fc.integer({ min: 1, max: 45 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash') }) },
);

/** The sums that the rows alone give, and the limits. */
async function audit(store: Store, tenant: Tenant, keyId: string, now: number): Promise<void> {
  const key = await store.read((db) => getKey(db, tenant.organizationId, keyId));
  const calls = await rows(store, keyId);
  const inWindow = calls.filter(
    (row) => row.periodStartedAt === key.currentPeriodStartedAt && row.periodStartedAt !== null,
  );
  const cost = (of: typeof calls) => of.reduce((sum, row) => sum + row.cost, 0n);
  const held = (of: typeof calls) =>
    of.filter(({ state }) => state === 'open').reduce((sum, row) => sum + row.reservation, 0n);
  const { usage, reserved, currentPeriodUsage, currentPeriodReserved } = key;
  expect({ usage, reserved, currentPeriodUsage, currentPeriodReserved }).toEqual({
    usage: cost(calls),
    reserved: held(calls),
    currentPeriodUsage: cost(inWindow),
    currentPeriodReserved: held(inWindow),
  });
  if (!isCapped(key)) throw new Error('the key has no limit');
  expect(key.usage + key.reserved <= (key.usageLimit ?? 0n)).toBe(true);
  const period = runningPeriod(key, now);
  if (period !== undefined) {
    expect(period.usage + key.currentPeriodReserved <= (key.periodUsageLimit ?? 0n)).toBe(true);
  }
}

test('no key is ever a pico-dollar over either limit, and its sums are those of its rows, whatever becomes of its calls', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.bigInt(1n, 3000n),
      fc.bigInt(1n, 1000n),
      fc.array(step, { maxLength: 40 }),
      async (total, window, steps) => {
        const world = await limited({ usageLimit: total, ...hourly(window) });
        const { clock, tenant, keyId, path } = world;
        let { store } = world;
        let open: OpenCall[] = [];
        for (const each of steps) {
          if (each.kind === 'wait') clock.advance(each.minutes * 60_000);
          if (each.kind === 'open') {
            const calls = Array.from({ length: each.calls }, () =>
              store.openCall(newCall(tenant, { keyId }), newDecision(), costing(each.cost)),
            );
            for (const result of await Promise.allSettled(calls))
              if (result.status === 'fulfilled') open.push(result.value);
          }
          if (each.kind === 'end' && open.length > 0) {
            const [call] = open.splice(each.which % open.length, 1);
            const cost = BigInt(Math.floor(Number(call?.reservation?.amount ?? 0n) * each.part));
            const end = each.released ? settlement({ state: 'released', cost: 0n }) : settlement({ cost });
            if (call !== undefined) await Promise.all([store.settleCall(call, end), store.settleCall(call, end)]);
          }
          if (each.kind === 'crash') {
            store.close();
            store = createStore({ path, clock });
            expect(await store.recoverOpenCalls()).toBe(open.length);
            open = [];
          }
          await audit(store, tenant, keyId, clock.now());
        }
        store.close();
      },
    ),
    { numRuns: 40 },
  );
});

describe('a limit of the calendar month', () => {
  const monthly = (limit: bigint) =>
    ({
      periodUsageLimit: limit,
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'month',
      periodUsageAlignment: 'calendar',
    }) as const;

  test('is whole again from the first instant of the month on, and says so before', async () => {
    const { open, sums, store, clock } = await limited(monthly(100n));
    clock.set('2026-03-31T23:59:59.999Z');
    const late = await open(costing(100n));
    expect(await refusal(open(costing(1n)))).toEqual(expect.arrayContaining([429, 'budget_reserved']));
    await store.settleCall(late, settlement({ cost: 100n }));
    expect(await refusal(open(costing(1n)))).toEqual([
      401,
      'usage_limit_reached',
      'This API key has reached its recurring usage limit of 0.0000000001 USD. It resets at 2026-04-01T00:00:00.000Z.',
      {},
    ]);

    clock.set('2026-04-01T00:00:00.000Z');
    const first = await open(costing(100n));
    expect(await sums()).toMatchObject({ currentPeriodUsage: 0n, currentPeriodReserved: 100n });
    await store.settleCall(first, settlement({ cost: 40n }));
    expect(await sums()).toMatchObject({ usage: 140n, reserved: 0n, currentPeriodUsage: 40n });

    clock.set('2026-04-30T23:59:59.999Z');
    expect(await refusal(open(costing(61n)))).toEqual(expect.arrayContaining([401, 'usage_limit_reached']));
  });

  test('does not count a call of the month before, however late it ends', async () => {
    const { open, sums, store, clock } = await limited(monthly(100n));
    clock.set('2026-03-31T23:59:59.000Z');
    const old = await open(costing(70n));
    clock.set('2026-04-01T00:00:00.000Z');
    const next = await open(costing(100n));
    await store.settleCall(old, settlement({ cost: 70n }));
    await store.settleCall(next, settlement({ cost: 5n }));
    expect(await sums()).toMatchObject({ usage: 75n, reserved: 0n, currentPeriodUsage: 5n, currentPeriodReserved: 0n });
  });

  test('keeps apart the calls of two settings in one month', async () => {
    const { open, sums, store, keyId, tenant } = await limited(monthly(100n));
    const change = (period: NewPeriod) =>
      store.write((db, now) => {
        const key = getKey(db, tenant.organizationId, keyId);
        updateKey(db, tenant.organizationId, keyId, limitChanges(key, { usageLimit: null, period }), now);
      });
    const old = await open(costing(100n));
    await change({ limit: 100n, value: 1, unit: 'month' });
    await change({ limit: 100n, value: 1, unit: 'month', alignment: 'calendar' });
    const next = await open(costing(100n));
    await store.settleCall(old, settlement({ cost: 90n }));
    expect(await sums()).toMatchObject({ currentPeriodUsage: 0n, currentPeriodReserved: 100n });
    await store.settleCall(next, settlement({ cost: 3n }));
    expect(await sums()).toMatchObject({ usage: 93n, currentPeriodUsage: 3n, currentPeriodReserved: 0n });
  });
});
