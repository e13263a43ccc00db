// What repeats from call to call is kept once, for as long as a call refers to it.
import { describe, expect, test } from 'vitest';
import { idsFrom } from '../../../src/domain/id.ts';
import { build } from '../../../src/store/db/sql.ts';
import { getDataDocument, getDecision } from '../../../src/store/ledger/references.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { costing, decisionIdOf, newCall, newDecision, settlement, storeWithTenant, type Tenant } from '../fixture.ts';

const DAY = 86_400_000;
const TIME = Date.parse('2026-01-27T12:00:00Z');

let calls = 0;

/** A call made at a time, and its decision. */
const callAt = (tenant: Tenant, time: number, changes: Parameters<typeof newCall>[1] = {}) => {
  calls += 1;
  return newCall(tenant, { id: idsFrom('call', time).slice(0, -8) + calls.toString(16).padStart(8, '0'), ...changes });
};

const attempts = (id: string): string =>
  `[{"provider":"sandbox","logId":"${id}"},{"provider":"other","logId":"${id}"}]`;

const TABLES = ['call_origins', 'call_verdicts', 'call_targets', 'data_documents'] as const;

const counts = (store: Store) =>
  store.read((db) => TABLES.map((table) => db.all(build.selectFrom(table).select('id')).length));

const days = (store: Store) =>
  store.read((db) => TABLES.map((table) => db.get(build.selectFrom(table).select('usedOn'))?.usedOn));

async function serve(store: Store, call: ReturnType<typeof newCall>, decision = newDecision()): Promise<void> {
  const opened = await store.openCall(call, decision, costing());
  await store.settleCall(opened, settlement({ attemptsJson: attempts(call.id) }));
}

describe('calls that have all in common', () => {
  test('share its rows, in one transaction and in several, and each reads as its own', async () => {
    const { store, tenant } = await storeWithTenant();
    const same = [callAt(tenant, TIME), callAt(tenant, TIME), callAt(tenant, TIME + 1)] as const;
    await Promise.all([serve(store, same[0]), serve(store, same[1])]);
    await serve(store, same[2]);

    expect(await counts(store)).toEqual([1, 1, 1, 1]);
    const rows = await store.read((db) => db.all(build.selectFrom('calls').selectAll().orderBy('number')));
    expect(
      rows.map(({ id, decisionId, requestId, attemptsJson }) => [id, decisionId, requestId, attemptsJson]),
    ).toEqual(same.map((call) => [call.id, decisionIdOf(call), call.requestId, attempts(call.id)]));
    for (const call of same) {
      const id = decisionIdOf(call);
      expect(await store.read((db) => getDecision(db, tenant.organizationId, id))).toMatchObject({
        id,
        callId: call.id,
      });
    }
  });

  test('share them with those of an earlier process', async () => {
    const { store, path, clock, tenant } = await storeWithTenant();
    await serve(store, callAt(tenant, TIME));
    store.close();
    const next = createStore({ path, clock });
    await serve(next, callAt(tenant, TIME + 1));
    expect(await counts(next)).toEqual([1, 1, 1, 1]);
    next.close();
  });
});

test.each([
  ['the model that is asked for', { requestedModel: 'other' }, {}, [2, 1, 1, 1]],
  ['streaming', { stream: true }, {}, [2, 1, 1, 1]],
  ['the tool', { tool: 'chat' }, {}, [2, 1, 1, 1]],
  ['the address', { clientAddress: null }, {}, [1, 2, 1, 1]],
  ['the outcome', {}, { outcome: 'deny' }, [1, 2, 1, 1]],
  ['the reason', {}, { reasonJson: '[]' }, [1, 2, 1, 1]],
  ['the shadow decision', {}, { shadowJson: '[]' }, [1, 2, 1, 1]],
  ['the violations', {}, { violationsJson: '[1]' }, [1, 2, 1, 1]],
  ['the input', {}, { inputJson: '{}' }, [1, 2, 1, 1]],
  ['the policy', {}, { bundleDigest: 'c'.repeat(64) }, [1, 2, 1, 1]],
  ['the revision', {}, { ruleRevision: 4 }, [1, 2, 1, 1]],
  ['the document', {}, { dataDigest: 'e'.repeat(64), dataText: '{}' }, [1, 2, 1, 2]],
] as const)('a call that differs in %s has a row of its own for it', async (_, call, decision, wanted) => {
  const { store, tenant } = await storeWithTenant();
  await serve(store, callAt(tenant, TIME));
  const other = callAt(tenant, TIME, call);
  await serve(store, other, newDecision(decision));

  expect(await counts(store)).toEqual(wanted);
  const row = await store.read((db) => db.get(build.selectFrom('calls').selectAll().where('id', '=', other.id)));
  expect(row).toMatchObject({ ...call, stream: 'stream' in call ? 1 : 0 });
  const judged = await store.read((db) =>
    db.get(build.selectFrom('decisions').selectAll().where('callId', '=', other.id)),
  );
  const { dataText = '{"subjects":{}}', ...told } = { dataText: undefined, ...decision };
  expect(judged).toMatchObject(told);
  expect(await store.read((db) => getDataDocument(db, tenant.organizationId, decisionIdOf(other)))).toBe(dataText);
});

describe('the day on which a row was last referred to', () => {
  test('is that of the latest call, whichever comes last', async () => {
    const { store, tenant } = await storeWithTenant();
    const day = Math.floor(TIME / DAY);
    for (const [time, wanted] of [
      [TIME, day],
      [TIME + DAY, day + 1],
      [TIME + DAY + 1, day + 1],
      [TIME + 3 * DAY, day + 3],
    ] as const) {
      await serve(store, callAt(tenant, time));
      expect(await days(store)).toEqual([wanted, wanted, wanted, wanted]);
    }
  });

  test('is not below that of a call which the clock, set back, made earlier than the one before it', async () => {
    const { store, tenant } = await storeWithTenant();
    const [late, early] = [callAt(tenant, TIME), callAt(tenant, TIME - 2 * DAY, { requestedModel: 'other' })];
    await serve(store, late);
    await serve(store, early);
    const origins = await store.read((db) => db.all(build.selectFrom('call_origins').select('usedOn')));
    expect(origins.map(({ usedOn }) => usedOn)).toEqual([Math.floor(TIME / DAY), Math.floor(TIME / DAY)]);
    const order = await store.read((db) => db.all(build.selectFrom('calls').select('id').orderBy('number')));
    expect(order.map(({ id }) => id)).toEqual([late.id, early.id]);
    const id = decisionIdOf(early);
    expect(await store.read((db) => getDecision(db, tenant.organizationId, id))).toMatchObject({ id });
  });
});

test('what an undone transaction stored is stored again by the next call', async () => {
  const { store, tenant } = await storeWithTenant();
  const failing = store.write(() => {
    throw new Error('Enough.');
  });
  const first = callAt(tenant, TIME);
  const [opened, failed] = await Promise.allSettled([store.openCall(first, newDecision(), costing()), failing]);
  expect([opened.status, failed.status]).toEqual(['fulfilled', 'rejected']);
  await serve(store, callAt(tenant, TIME + 1));
  expect(await counts(store)).toEqual([1, 1, 1, 1]);
});
