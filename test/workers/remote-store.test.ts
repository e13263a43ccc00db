// A worker's store and the writer that it asks, on two connections to one file; messages are copied as between threads.
import { expect, it, onTestFinished } from 'vitest';
import { worstCaseWithin } from '../../src/core/price/worst-case.ts';
import type { FindWorstCase, OpenCall } from '../../src/store/ledger/ledger.ts';
import { createStore } from '../../src/store/store.ts';
import { getKey, insertKey, type NewKey, updateKey } from '../../src/store/tenants/keys.ts';
import type { Question } from '../../src/workers/messages.ts';
import { createRemoteStore, remoteRecordingCheck } from '../../src/workers/remote-store.ts';
import { WorkerCalls } from '../../src/workers/worker-calls.ts';
import { newCall, newDecision, newKey, settlement, storeWithTenant } from '../store/fixture.ts';

const bounded =
  (...amounts: bigint[]): FindWorstCase =>
  () =>
    worstCaseWithin({
      bounds: amounts.map((fixed) => ({ fixed, perOutputToken: 1n, maxOutputTokens: 50 })),
      isCut: true,
    });

async function worker(limits: Partial<NewKey> = {}) {
  const opened = await storeWithTenant();
  const { store, path, clock, tenant } = opened;
  const key = newKey(tenant, limits);
  await store.write((db, now) => insertKey(db, key, now));
  const local = createStore({ path, clock });
  onTestFinished(() => local.close());
  const calls = new WorkerCalls(store, async () => true);
  const asked: Question[] = [];
  const ask = async (question: Question) => {
    asked.push(question);
    const answer = structuredClone(await calls.answer(structuredClone(question)));
    local.lookAgain();
    return answer;
  };
  const remote = createRemoteStore(local, ask);
  const open = (worstCase: FindWorstCase): Promise<OpenCall> =>
    remote.openCall(newCall(tenant, { keyId: key.id }), newDecision(), worstCase, [
      { providerId: 'sandbox', modelId: 'echo' },
    ]);
  const sums = () => store.read((db) => getKey(db, tenant.organizationId, key.id));
  return { ...opened, key, remote, asked, ask, calls, open, sums };
}

it('opens and settles a call without a limit, and never measures it', async () => {
  const { remote, open, sums, asked, tenant } = await worker();
  const opened = await open(() => {
    throw new Error('needless');
  });
  expect(opened).toMatchObject({ reservation: undefined, held: 0n, ruleRevision: 0, memberId: tenant.memberId });
  expect(opened.providers).toBe(await remote.organizationProviders(tenant.organizationId));
  expect(await remote.settleCall(opened, settlement({ cost: 7n }))).toBe(true);
  expect(await sums()).toMatchObject({ usage: 7n, reserved: 0n });
  expect(asked.map(({ kind }) => kind)).toEqual(['open', 'settle']);
});

it('sends the worst case along for a key that was seen with a limit, and is cut to what is left', async () => {
  const { remote, key, open, sums, asked } = await worker({ usageLimit: 120n });
  await remote.findKeyByHash(key.secretHash);
  const opened = await open(bounded(90n, 100n));
  expect(opened).toMatchObject({ reservation: { amount: 120n, maxOutputTokens: 20 }, held: 120n });
  expect(await sums()).toMatchObject({ usage: 0n, reserved: 120n });
  await expect(open(bounded(100n))).rejects.toMatchObject({
    status: 429,
    code: 'budget_reserved',
    headers: { 'retry-after': '1' },
  });
  expect(asked.map(({ kind }) => kind)).toEqual(['open', 'open']);
});

it('asks again, with the worst case, where a limit has come that it had not seen', async () => {
  const { remote, store, tenant, key, open, sums, asked } = await worker();
  await remote.findKeyByHash(key.secretHash);
  await store.write((db, now) => updateKey(db, tenant.organizationId, key.id, { usageLimit: 120n }, now));
  const opened = await open(bounded(100n));
  expect(opened.held).toBe(120n);
  expect(await sums()).toMatchObject({ usage: 0n, reserved: 120n });
  expect(asked.map(({ kind }) => kind)).toEqual(['open', 'open']);
});

it('holds more back for another attempt where there is room', async () => {
  const { remote, key, open, sums } = await worker({ usageLimit: 400n });
  await remote.findKeyByHash(key.secretHash);
  const opened = await open(bounded(100n));
  expect([opened.held, await remote.continueCall(opened, 60n), opened.held]).toEqual([150n, true, 210n]);
  expect(await remote.continueCall(opened, 300n)).toBe(false);
  expect(await sums()).toMatchObject({ usage: 0n, reserved: 210n });
});

it('passes on the refusal of a key that was disabled meanwhile', async () => {
  const { store, tenant, key, open } = await worker();
  await store.write((db, now) => updateKey(db, tenant.organizationId, key.id, { disabledAt: now }, now));
  await expect(open(bounded(1n))).rejects.toMatchObject({ status: 401, code: 'api_key_disabled' });
});

it('says whether the writer can record', async () => {
  const { ask } = await worker();
  expect(await remoteRecordingCheck(ask)()).toBe(true);
});

it('of a worker that has died, settles what is open at what was held back, also what is opened only then', async () => {
  const { key, remote, open, calls, sums } = await worker({ usageLimit: 1000n });
  await remote.findKeyByHash(key.secretHash);
  await open(bounded(100n));
  const late = open(bounded(10n));
  expect(await calls.recover()).toBe(1);
  await late;
  expect(await sums()).toMatchObject({ usage: 150n + 60n, reserved: 0n });
});
