// What the core keeps of its calls: one row each, settled once, and sums that are exact.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createContainer } from '../../../src/container.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { CALL_STATES } from '../../../src/store/ledger/statements.ts';
import { chat, faulty, hello } from '../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRows, decisionRows, keySums } from '../../support/rows.ts';

const validatePolicyInput = validator('PolicyInput');

const clock = new ManualClock('2026-11-21T12:00:00Z');
const CALL = 18_000_000n;
let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway({}, { clock });
});

afterEach(() => gateway.close());

describe('the sums of a key', () => {
  it('are exact under parallel calls, whatever becomes of each', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } });
    const bodies = Array.from(
      { length: 60 },
      (_, i) =>
        [
          hello(),
          hello({ stream: true }),
          faulty('500'),
          hello({ model: 'sandbox-slow' }),
          hello({ model: 'sandbox-free' }),
        ][i % 5] ?? {},
    );

    const answers = await Promise.all(bodies.map((body) => chat(gateway, body)));

    expect(answers.map(({ status }) => status)).toEqual(bodies.map((_, i) => [200, 200, 502, 403, 200][i % 5]));
    expect(keySums(gateway, gateway.keyId)).toEqual({
      usage: 24n * CALL,
      reserved: 0n,
      currentPeriodUsage: 0n,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: null,
    });
    const rows = callRows(gateway);
    expect(Map.groupBy(rows, ({ state }) => state).get('settled')).toHaveLength(48);
    expect(rows.filter(({ state }) => state === 'denied')).toHaveLength(12);
    expect(rows.reduce((sum, row) => sum + row.cost, 0n)).toBe(24n * CALL);
    expect(new Set(rows.map((row) => row.decisionId))).toEqual(new Set(decisionRows(gateway).map((row) => row.id)));
    expect(
      decisionRows(gateway)
        .filter(({ outcome }) => outcome === 'deny')
        .every((row) => row.violationsJson.includes(id)),
    ).toBe(true);
  });

  it('are kept apart by key, and by window', async () => {
    const key = addKey(gateway, { periodUsageLimit: '1', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' });
    await chat(gateway, hello());
    await chat(gateway, hello(), key);
    clock.advance(24 * 3_600_000);
    await chat(gateway, hello(), key);
    await chat(gateway, hello(), key);

    expect(keySums(gateway, gateway.keyId).usage).toBe(CALL);
    expect(keySums(gateway, key.id)).toEqual({
      usage: 3n * CALL,
      reserved: 0n,
      currentPeriodUsage: 2n * CALL,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: clock.now(),
    });
  });
});

describe('a decision', () => {
  it('is kept with all that is needed to make it again', async () => {
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['other'] } });
    await chat(gateway, hello(), { headers: [['x-forwarded-for', '192.0.2.7']] });

    const [decision] = decisionRows(gateway);
    const text = gateway.db.connection
      .prepare<[string | undefined], { text: string }>('SELECT text FROM data_documents WHERE digest = ?')
      .get(decision?.dataDigest)?.text;
    const input: unknown = JSON.parse(decision?.inputJson ?? '');
    if (text === undefined || !validatePolicyInput(input)) throw new Error('the decision cannot be made again');
    const pdp = createPdp();
    const again = pdp.decide(input, { text, digest: decision?.dataDigest ?? '' });
    pdp.close();

    expect(again).toEqual({ permitted: ['sandbox/sandbox-paid'], violations: [] });
    expect([decision?.bundleDigest, decision?.ruleRevision, input.client_ip]).toEqual([
      pdp.bundleDigest,
      1,
      '192.0.2.7',
    ]);
  });
});

describe('a call that ends before anything is sent to a provider', () => {
  it.each([false, true])(
    'is released on its row, and what was held back for it is free (streamed: %s)',
    async (stream) => {
      const key = addKey(gateway, {
        usageLimit: '1',
        periodUsageLimit: '1',
        periodUsageDurationValue: 1,
        periodUsageDurationUnit: 'day',
      });
      await gateway.container.close();
      const { timeouts } = gateway.config;
      const hasty = await createContainer({ ...gateway.config, timeouts: { ...timeouts, total: 0 } }, { clock });
      try {
        const answer = await chat({ ...gateway, origin: hasty.gateway.origin }, hello({ stream }), key);

        expect(answer.status).toBe(502);
        expect(callRows(gateway)).toMatchObject([
          { state: 'released', statusCode: 502, errorCode: 'upstream_error', cost: 0n, attemptsJson: null },
        ]);
        expect((callRows(gateway)[0]?.reservation ?? 0n) > 0n).toBe(true);
        expect(keySums(gateway, key.id)).toMatchObject({ usage: 0n, reserved: 0n, currentPeriodReserved: 0n });
      } finally {
        await hasty.close();
      }
    },
  );
});

describe('a call that a crash left open', () => {
  it('is recovered at the next start: booked at its reservation, once, and never open again', async () => {
    await chat(gateway, hello());
    const before = keySums(gateway, gateway.keyId);
    const { connection } = gateway.db;
    connection
      .prepare('UPDATE ledger SET state = ?, settledAt = NULL, cost = 0, reservation = 5')
      .run(CALL_STATES.open);
    connection.prepare('UPDATE keys SET reserved = 5').run();
    await gateway.container.close();

    const restarted = await createContainer(gateway.config, { clock });
    const again = await restarted.close().then(() => createContainer(gateway.config, { clock }));
    await again.close();

    expect(callRows(gateway).map(({ state, cost, settledAt }) => [state, cost, settledAt])).toEqual([
      ['recovered', 5n, clock.now()],
    ]);
    expect(keySums(gateway, gateway.keyId)).toEqual({
      ...before,
      usage: before.usage + 5n,
      reserved: 0n,
    });
    expect([restarted.firstRun, again.firstRun]).toEqual([undefined, undefined]);
  });
});
