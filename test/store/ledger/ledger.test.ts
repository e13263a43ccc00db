import { describe, expect, test } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { MAX_AMOUNT } from '../../../src/domain/limits.ts';
import { formatTime } from '../../../src/domain/time.ts';
import { build } from '../../../src/store/db/sql.ts';
import { getDataDocument, getDecision } from '../../../src/store/ledger/references.ts';
import type { Store } from '../../../src/store/store.ts';
import { getKey, insertKey, updateKey } from '../../../src/store/tenants/key-records.ts';
import {
  costing,
  decisionIdOf,
  denial,
  newCall,
  newDecision,
  newKey,
  START,
  settlement,
  storeWithTenant,
  type Tenant,
} from '../fixture.ts';

const HOUR = 3_600_000;

const callRow = (store: Store, id: string) =>
  store.read((db) => db.get(build.selectFrom('calls').selectAll().where('id', '=', id)));

const sums = (store: Store, tenant: Tenant, keyId = tenant.keyId) =>
  store.read((db) => {
    const key = getKey(db, tenant.organizationId, keyId);
    const { usage, currentPeriodUsage, reserved, currentPeriodReserved } = key;
    const { currentPeriodStartedAt: startedAt, lastUsedAt } = key;
    return {
      usage,
      currentPeriodUsage,
      reserved,
      currentPeriodReserved,
      startedAt: startedAt === null ? null : formatTime(startedAt),
      lastUsedAt: lastUsedAt === null ? null : formatTime(lastUsedAt),
    };
  });

describe('a call', () => {
  test('has its row and its decision committed before dispatch, and is settled on the same row', async () => {
    const { store, clock, tenant } = await storeWithTenant();
    const call = newCall(tenant, { stream: true, clientRequestId: 'abc' });
    const decision = newDecision();
    const opened = await store.openCall(call, decision, costing());
    expect(await callRow(store, call.id)).toMatchObject({ state: 'open', settledAt: null, cost: 0n });

    clock.advance(1500);
    const attemptsJson = '[{"provider":"sandbox"}]';
    expect(await store.settleCall(opened, settlement({ attemptsJson }))).toBe(true);
    expect(await callRow(store, call.id)).toEqual({
      number: opened.number,
      id: call.id,
      organizationId: tenant.organizationId,
      projectId: tenant.projectId,
      keyId: tenant.keyId,
      memberId: tenant.memberId,
      decisionId: decisionIdOf(call),
      state: 'settled',
      action: 'chat',
      requestId: call.requestId,
      clientRequestId: 'abc',
      clientAddress: '192.0.2.1',
      tool: null,
      requestedModel: 'sandbox/echo',
      stream: 1,
      createdAt: START,
      reservation: 0n,
      periodStartedAt: null,
      memberPeriodStartedAt: null,
      projectPeriodStartedAt: null,
      organizationPeriodStartedAt: null,
      priceUnknown: 0,
      settledAt: START + 1500,
      cost: 25n,
      costDetailsJson: '{"total_cost":"0.000000000025"}',
      promptTokens: 10,
      completionTokens: 5,
      reasoningTokens: 1,
      cachedTokens: 2,
      cacheWriteTokens: 3,
      usageEstimated: 0,
      cached: 0,
      providerId: 'sandbox',
      modelId: 'echo',
      providerKeyId: null,
      attemptsJson: attemptsJson,
      statusCode: 200,
      errorCode: null,
    });
    expect(await sums(store, tenant)).toEqual({
      usage: 25n,
      currentPeriodUsage: 0n,
      reserved: 0n,
      currentPeriodReserved: 0n,
      startedAt: null,
      lastUsedAt: '2026-03-01T12:00:01.500Z',
    });
  });

  test('is settled exactly once, however often and however closely it is tried', async () => {
    const { store, tenant } = await storeWithTenant();
    const opened = await store.openCall(newCall(tenant), newDecision(), costing());
    const together = await Promise.all([1n, 2n, 4n].map((cost) => store.settleCall(opened, settlement({ cost }))));
    const later = await store.settleCall(opened, settlement({ cost: 8n }));
    expect([...together, later]).toEqual([true, false, false, false]);
    expect(await callRow(store, opened.callId)).toMatchObject({ state: 'settled', cost: 1n });
    expect(await sums(store, tenant)).toMatchObject({ usage: 1n });
  });

  test('of a key that was withdrawn meanwhile is not opened: its row is a finished one', async () => {
    const { store, tenant } = await storeWithTenant();
    await store.write((db, now) => updateKey(db, tenant.organizationId, tenant.keyId, { disabledAt: now }, now));
    const call = newCall(tenant);
    await expect(store.openCall(call, newDecision(), costing())).rejects.toMatchObject({
      status: 401,
      code: 'api_key_disabled',
    });
    expect(await callRow(store, call.id)).toMatchObject({
      state: 'released',
      reservation: 0n,
      cost: 0n,
      statusCode: 401,
      errorCode: 'api_key_disabled',
    });
  });

  test('cannot be opened on a key of another organization', async () => {
    const { store, tenant } = await storeWithTenant();
    const call = newCall(tenant, { organizationId: newId('org') });
    await expect(store.openCall(call, newDecision(), costing())).rejects.toThrow('has no key');
    expect(await callRow(store, call.id)).toBeUndefined();
  });

  test('may cost more than a double can count exactly, and its sum stays exact', async () => {
    const { store, tenant } = await storeWithTenant();
    const cost = 9_007_199_254_740_993n;
    for (let i = 0; i < 3; i++) {
      await store.settleCall(await store.openCall(newCall(tenant), newDecision(), costing()), settlement({ cost }));
    }
    expect(await sums(store, tenant)).toMatchObject({ usage: 3n * cost });
  });

  test('of absurd cost is settled at the largest amount, and the sum does not overflow', async () => {
    const { store, tenant } = await storeWithTenant();
    for (let i = 0; i < 2; i++) {
      const opened = await store.openCall(newCall(tenant), newDecision(), costing());
      expect(await store.settleCall(opened, settlement({ cost: 10n ** 30n }))).toBe(true);
    }
    expect(await sums(store, tenant)).toMatchObject({ usage: MAX_AMOUNT });
  });
});

describe('a recurring window', () => {
  const limitedTenant = async (periodUsageLimit = 1000n) => {
    const opened = await storeWithTenant();
    const key = newKey(opened.tenant, {
      periodUsageLimit,
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'hour',
    });
    await opened.store.write((db, now) => insertKey(db, key, now));
    return { ...opened, tenant: { ...opened.tenant, keyId: key.id } };
  };

  test('begins with the first call, and takes the calls up to the reset instant', async () => {
    const { store, clock, tenant } = await limitedTenant();
    clock.advance(5 * HOUR);
    const first = await store.openCall(newCall(tenant), newDecision(), costing());
    await store.settleCall(first, settlement({ cost: 10n }));
    clock.advance(HOUR - 1);
    const second = await store.openCall(newCall(tenant), newDecision(), costing());
    await store.settleCall(second, settlement({ cost: 20n }));
    expect(await sums(store, tenant)).toMatchObject({
      usage: 30n,
      currentPeriodUsage: 30n,
      startedAt: '2026-03-01T17:00:00.000Z',
    });

    clock.advance(1);
    const third = await store.openCall(newCall(tenant), newDecision(), costing());
    await store.settleCall(third, settlement({ cost: 40n }));
    expect(await sums(store, tenant)).toMatchObject({
      usage: 70n,
      currentPeriodUsage: 40n,
      startedAt: '2026-03-01T18:00:00.000Z',
    });
  });

  test('takes the cost of the calls that were opened in it, not of those settled in it', async () => {
    const { store, clock, tenant } = await limitedTenant();
    const slow = await store.openCall(newCall(tenant), newDecision(), costing());
    clock.advance(HOUR);
    const quick = await store.openCall(newCall(tenant), newDecision(), costing());
    await store.settleCall(slow, settlement({ cost: 10n }));
    await store.settleCall(quick, settlement({ cost: 3n }));
    expect(await sums(store, tenant)).toMatchObject({ usage: 13n, currentPeriodUsage: 3n });
  });

  test('keeps the cost of a call that is settled after its end while no other has begun', async () => {
    const { store, clock, tenant } = await limitedTenant();
    const slow = await store.openCall(newCall(tenant), newDecision(), costing());
    clock.advance(3 * HOUR);
    await store.settleCall(slow, settlement({ cost: 10n }));
    expect(await sums(store, tenant)).toMatchObject({ currentPeriodUsage: 10n, startedAt: '2026-03-01T12:00:00.000Z' });
  });

  test('that is spent refuses until it ends', async () => {
    const { store, clock, tenant } = await limitedTenant(10n);
    await store.settleCall(await store.openCall(newCall(tenant), newDecision(), costing()), settlement({ cost: 10n }));
    await expect(store.openCall(newCall(tenant), newDecision(), costing())).rejects.toMatchObject({
      code: 'usage_limit_reached',
    });
    clock.advance(HOUR);
    await expect(store.openCall(newCall(tenant), newDecision(), costing())).resolves.toMatchObject({
      windows: { periodStartedAt: START + HOUR },
    });
  });
});

describe('reservations', () => {
  test('are held back while the call is open and freed when it is settled', async () => {
    const { store, tenant } = await storeWithTenant();
    const key = newKey(tenant, {
      periodUsageLimit: 1000n,
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'day',
    });
    await store.write((db, now) => insertKey(db, key, now));
    const call = newCall(tenant, { keyId: key.id });
    const opened = await store.openCall(call, newDecision(), costing(70n));
    expect(await sums(store, tenant, key.id)).toMatchObject({ usage: 0n, reserved: 70n, currentPeriodReserved: 70n });
    await store.settleCall(opened, settlement({ cost: 30n }));
    expect(await sums(store, tenant, key.id)).toMatchObject({
      usage: 30n,
      currentPeriodUsage: 30n,
      reserved: 0n,
      currentPeriodReserved: 0n,
    });
  });
});

describe('calls that are never dispatched', () => {
  test('a denial is one finished row with its decision, and counts as use of the key', async () => {
    const { store, tenant } = await storeWithTenant();
    const call = newCall(tenant);
    const decision = newDecision({
      outcome: 'deny',
      reasonJson: '{"kind":"models"}',
      violationsJson: '[{"scope":"key"}]',
      shadowJson: '{"would_deny":[]}',
    });
    await store.recordFinishedCall(call, decision, denial());
    expect(await callRow(store, call.id)).toMatchObject({
      state: 'denied',
      createdAt: START,
      settledAt: START,
      cost: 0n,
      statusCode: 403,
      errorCode: 'permission_denied',
      decisionId: decisionIdOf(call),
    });
    expect(await sums(store, tenant)).toMatchObject({ usage: 0n, lastUsedAt: '2026-03-01T12:00:00.000Z' });
    expect(await store.read((db) => getDecision(db, tenant.organizationId, decisionIdOf(call)))).toEqual({
      id: decisionIdOf(call),
      organizationId: tenant.organizationId,
      keyId: tenant.keyId,
      callId: call.id,
      createdAt: START,
      action: 'chat',
      requestedModel: 'sandbox/echo',
      outcome: 'deny',
      reason: { kind: 'models' },
      violations: [{ scope: 'key' }],
      shadow: { would_deny: [] },
      bundleDigest: 'b'.repeat(64),
      dataDigest: 'd'.repeat(64),
      ruleRevision: 3,
      input: { action: 'chat' },
    });
  });

  test('a cache hit is one settled row that costs nothing', async () => {
    const { store, tenant } = await storeWithTenant();
    const call = newCall(tenant);
    const hit = denial({ state: 'settled', cached: true, providerId: 'sandbox', modelId: 'echo', statusCode: 200 });
    await store.recordFinishedCall(call, newDecision(), { ...hit, errorCode: null });
    expect(await callRow(store, call.id)).toMatchObject({
      state: 'settled',
      cached: 1,
      cost: 0n,
      providerId: 'sandbox',
      modelId: 'echo',
      statusCode: 200,
      errorCode: null,
    });
  });
});

describe('decisions', () => {
  test('store each data document once, and each decision finds the one that it saw', async () => {
    const { store, tenant } = await storeWithTenant();
    const decisions = ['one', 'two', 'one', 'two'].map((text) =>
      newDecision({ dataDigest: `digest of ${text}`, dataText: text }),
    );
    const calls = decisions.map(() => newCall(tenant));
    for (const [index, decision] of decisions.entries())
      await store.openCall(calls[index] ?? newCall(tenant), decision, costing());
    const texts = await store.read((db) =>
      calls.map((call) => getDataDocument(db, tenant.organizationId, decisionIdOf(call))),
    );
    const stored = await store.read((db) => db.all(build.selectFrom('data_documents').select('text').orderBy('text')));
    expect([texts, stored]).toEqual([
      ['one', 'two', 'one', 'two'],
      [{ text: 'one' }, { text: 'two' }],
    ]);
  });

  test('keep their document when a write of the same group fails and the group is run again', async () => {
    const { store, tenant } = await storeWithTenant();
    const decision = newDecision({ dataDigest: 'new digest', dataText: 'new text' });
    const call = newCall(tenant);
    const [opened, failed] = await Promise.allSettled([
      store.openCall(call, decision, costing()),
      store.write(() => {
        throw new Error('Enough.');
      }),
    ]);
    expect([opened.status, failed.status]).toEqual(['fulfilled', 'rejected']);
    expect(await store.read((db) => getDataDocument(db, tenant.organizationId, decisionIdOf(call)))).toBe('new text');
  });
});
