// POST /v1/chat/completions: a key that may not be used, each with the reason of src/admin/README.md, "refusals".
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deleteKey } from '../../../src/admin/keys/keys.ts';
import { type BudgetOwner, changeBudget, getBudget } from '../../../src/admin/tenants/budgets.ts';
import { generateSecret } from '../../../src/domain/id.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import type { BudgetPatch } from '../../../src/generated/types.ts';
import { bearer, chat, completionOf, errorOf, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { addKey, disable, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../support/own-models.ts';
import { callRow, callRows, decisionRows, keySums } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const clock = new ManualClock('2026-11-21T12:00:00Z');
const MINUTE = 60_000;
let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = {
    ...upstreamEnv('acme', upstream.origin, 'priced,unpriced', 'priced=2/8'),
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
  };
  gateway = await startGateway(env, { clock });
  const metered = { maxOutput: 1000, pricing: { prompt: '0.000001', completion: '0.00001' } };
  const { allowPrivateUpstreams } = gateway.config;
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, allowPrivateUpstreams, { flat: FLAT, metered });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const unauthorized = (code: string, message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
});

const NO_KEY = unauthorized('invalid_api_key', 'No API key was given: send `Authorization: Bearer <key>`.');
const INVALID = unauthorized('invalid_api_key', 'The API key is not valid.');

describe('a request without a usable key', () => {
  it.each([
    ['no header', []],
    ['another scheme', [['authorization', 'Basic abc']]],
    ['no token', [['authorization', 'Bearer ']]],
    ['two tokens', [['authorization', 'Bearer a b']]],
  ] as const)('is asked for one: %s', async (_, headers) => {
    const answer = await post(gateway, hello(), [JSON_TYPE, ...headers]);

    expect([answer.status, answer.json]).toEqual([401, NO_KEY]);
  });

  it('gets the same answer whether the key is mistyped, unknown, or deleted', async () => {
    const deleted = addKey(gateway);
    deleteKey(gateway.db, { kind: 'cli', organizationId: gateway.firstRun.organizationId }, deleted.id, clock.now());
    const right = gateway.firstRun.gatewayKey;
    const mistyped = `${right.slice(0, -1)}${right.endsWith('a') ? 'b' : 'a'}`;
    const tokens = ['x', mistyped, generateSecret('gateway'), deleted.token, `${right}a`];

    const answers = await Promise.all(tokens.map((token) => chat(gateway, hello(), { token })));

    expect(answers.map(({ status, json }) => [status, json])).toEqual(tokens.map(() => [401, INVALID]));
    expect(callRows(gateway)).toEqual([]);
  });

  it('carries our request id, and nothing about a decision', async () => {
    const { headers } = await post(gateway, hello(), [JSON_TYPE, ['x-request-id', 'mine']]);

    expect([headers['x-request-id'], headers['x-client-request-id'], headers['x-decision-id']]).toEqual([
      expect.stringMatching(/^req_[0-9a-f]{32}$/),
      'mine',
      undefined,
    ]);
  });
});

describe('a key', () => {
  it('is refused at once when it is disabled', async () => {
    const key = addKey(gateway);
    expect((await chat(gateway, hello(), key)).status).toBe(200);

    disable(gateway, key.id);

    const answer = await chat(gateway, hello(), key);
    expect([answer.status, answer.json]).toEqual([401, unauthorized('api_key_disabled', 'This API key is disabled.')]);
  });

  it('is refused from the instant at which it expires', async () => {
    const key = addKey(gateway, {}, clock.now() + MINUTE, clock.now());
    clock.advance(MINUTE - 1);
    expect((await chat(gateway, hello(), key)).status).toBe(200);

    clock.advance(1);

    const answer = await chat(gateway, hello(), key);
    expect([answer.status, answer.json]).toEqual([401, unauthorized('api_key_expired', 'This API key has expired.')]);
  });

  it('is refused when its owner has left', async () => {
    const other = gateway.db.connection.prepare(
      "INSERT INTO members (id, organizationId, email, role, createdAt, updatedAt) VALUES ('mem_x', ?, 'x@localhost', 'developer', 0, 0)",
    );
    other.run(gateway.firstRun.organizationId);
    gateway.db.connection
      .prepare(
        "INSERT INTO subject_rules (subjectId, organizationId, scope, compiledJson) VALUES ('mem_x', ?, 'member', '{\"enforce\":{}}')",
      )
      .run(gateway.firstRun.organizationId);
    const key = addKey(gateway, { createdBy: 'mem_x' });
    expect((await chat(gateway, hello(), key)).status).toBe(200);

    gateway.db.connection.prepare("UPDATE members SET removedAt = 1 WHERE id = 'mem_x'").run();

    const answer = await chat(gateway, hello(), key);
    expect([answer.status, answer.json]).toEqual([
      401,
      unauthorized('api_key_disabled', 'The owner of this API key has left the organization.'),
    ]);
  });
});

const flat = (content: string) => hello({ model: 'own/flat', messages: [{ role: 'user', content }] });
const CENT = 10_000_000_000n;

describe('a key with an all-time limit', () => {
  it('is refused once its spend has reached it, and not before', async () => {
    const key = addKey(gateway, { usageLimit: '0.02' });

    const answers = [];
    for (const content of ['one', 'two', 'three']) answers.push(await chat(gateway, flat(content), key));

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401]);
    expect(answers[2]?.json).toEqual(
      unauthorized('usage_limit_reached', 'This API key has reached its all-time usage limit of 0.02 USD.'),
    );
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 2n * CENT, reserved: 0n });
  });

  it('of nothing is refused at once', async () => {
    const answer = await chat(gateway, hello(), addKey(gateway, { usageLimit: '0' }));

    expect([answer.status, answer.json]).toEqual([
      401,
      unauthorized('usage_limit_reached', 'This API key has reached its all-time usage limit of 0 USD.'),
    ]);
  });

  it('passes again when the limit is raised', async () => {
    const key = addKey(gateway, { usageLimit: '0' });
    gateway.db.connection.prepare('UPDATE keys SET usageLimit = 1000000000000 WHERE id = ?').run(key.id);

    expect((await chat(gateway, hello(), key)).status).toBe(200);
  });

  it('is refused a call that may cost more than is left, and told both; it is sent nowhere and leaves a row', async () => {
    const key = addKey(gateway, { usageLimit: '0.025' });
    await chat(gateway, flat('one'), key);
    await chat(gateway, flat('two'), key);
    upstream.begin(json(completion('never')));

    const answer = await chat(gateway, flat('three'), key);

    expect([answer.status, answer.json]).toEqual([
      401,
      unauthorized(
        'usage_limit_reached',
        'This call may cost 0.01 USD, and the all-time usage limit of this API key leaves 0.005 USD.',
      ),
    ]);
    expect(upstream.received).toEqual([]);
    expect(callRow(gateway, answer)).toMatchObject({
      state: 'released',
      statusCode: 401,
      errorCode: 'usage_limit_reached',
      reservation: 0n,
      cost: 0n,
      decisionId: answer.headers['x-decision-id'],
    });
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 2n * CENT, reserved: 0n });
  });

  it('is refused by the worst case, that is, by the longest answer asked for', async () => {
    const key = addKey(gateway, { usageLimit: '0.001' });
    const metered = (max_tokens: number) => hello({ model: 'own/metered', max_tokens });

    const [refused, served] = [await chat(gateway, metered(92), key), await chat(gateway, metered(91), key)];

    // 86 bytes at a millionth of a dollar and 92 tokens at a hundred thousandth: 0.001006 USD.
    expect([refused.status, served.status]).toEqual([401, 200]);
    expect(errorOf(refused).message).toBe(
      'This call may cost 0.001006 USD, and the all-time usage limit of this API key leaves 0.001 USD.',
    );
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 60_000_000n, reserved: 0n });
  });
});

describe('a key with a recurring limit', () => {
  const recurring = {
    periodUsageLimit: '0.015',
    periodUsageDurationValue: 1,
    periodUsageDurationUnit: 'hour',
  } as const;

  it('is refused until its window ends, at which instant it passes', async () => {
    clock.set('2026-11-22T08:30:00Z');
    const key = addKey(gateway, { ...recurring, periodUsageLimit: '0.01' });
    expect((await chat(gateway, flat('one'), key)).status).toBe(200);

    clock.set('2026-11-22T09:29:59.999Z');
    const refused = await chat(gateway, flat('two'), key);
    clock.set('2026-11-22T09:30:00Z');
    const passed = await chat(gateway, flat('three'), key);

    expect([refused.status, refused.json]).toEqual([
      401,
      unauthorized(
        'usage_limit_reached',
        'This API key has reached its recurring usage limit of 0.01 USD. It resets at 2026-11-22T09:30:00.000Z.',
      ),
    ]);
    expect(passed.status).toBe(200);
    expect(keySums(gateway, key.id)).toEqual({
      usage: 2n * CENT,
      reserved: 0n,
      currentPeriodUsage: CENT,
      currentPeriodReserved: 0n,
      currentPeriodStartedAt: Date.parse('2026-11-22T09:30:00Z'),
    });
    expect(callRow(gateway, passed).periodStartedAt).toBe(Date.parse('2026-11-22T09:30:00Z'));
  });

  it('is refused a call that may cost more than the window leaves, and told when that ends', async () => {
    clock.set('2026-11-22T08:30:00Z');
    const key = addKey(gateway, recurring);
    await chat(gateway, flat('one'), key);

    const answer = await chat(gateway, flat('two'), key);

    expect([answer.status, answer.json]).toEqual([
      401,
      unauthorized(
        'usage_limit_reached',
        'This call may cost 0.01 USD, and the recurring usage limit of this API key leaves 0.005 USD. ' +
          'It resets at 2026-11-22T09:30:00.000Z.',
      ),
    ]);
  });
});

describe('a key with any limit', () => {
  it('may not call what has no known price, which is not its fault: 400 says what to configure', async () => {
    upstream.begin(json(completion('Hello')));
    const key = addKey(gateway, { usageLimit: '5' });

    const answer = await chat(gateway, hello({ model: 'unpriced' }), key);

    expect([answer.status, answer.json]).toEqual([
      400,
      {
        error: {
          message:
            'A usage limit applies to this API key, and no price of the model is known at any permitted provider: the limit could not be kept. ' +
            'Name another model, or ask the operator to state its price (for an upstream: UPSTREAM_<NAME>_PRICES).',
          type: 'invalid_request_error',
          param: '/model',
          code: 'invalid_request',
        },
      },
    ]);
    expect(upstream.received).toEqual([]);
    expect(callRow(gateway, answer)).toMatchObject({
      state: 'released',
      statusCode: 400,
      errorCode: 'invalid_request',
      cost: 0n,
      decisionId: answer.headers['x-decision-id'],
    });
    expect(decisionRows(gateway).map(({ id }) => id)).toContain(answer.headers['x-decision-id']);
    expect((await chat(gateway, hello({ model: 'unpriced' }))).status).toBe(200);
  });

  it('may call what has no known longest answer: the default is sent upstream as the maximum', async () => {
    const key = addKey(gateway, { usageLimit: '5' });

    const { usage } = completionOf(await chat(gateway, hello({ model: 'priced' }), key));

    expect(upstream.received.at(-1)?.json).toMatchObject({ max_tokens: 16_384 });
    expect(usage.info).toBe('A usage limit applies to this API key: each choice was limited to 16384 tokens.');
  });

  it('may call what is bounded by the maximum that the caller names', async () => {
    const key = addKey(gateway, { usageLimit: '5' });

    const { usage } = completionOf(await chat(gateway, hello({ model: 'priced', max_tokens: 50 }), key));

    expect([usage.cost, usage.info]).toEqual([0.00006, undefined]);
  });
});

describe('a key under a budget', () => {
  const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;
  const limit = (owner: BudgetOwner, limits: BudgetPatch): void =>
    void changeBudget(gateway.db, actor(), owner, limits, clock.now());
  const call = { model: 'own/flat' };

  it.each<[string, string, () => BudgetOwner]>([
    ['owner', 'their', () => ({ kind: 'member', member: gateway.memberId })],
    ['project', 'its', () => ({ kind: 'project', project: gateway.firstRun.projectId })],
    ['organization', 'its', () => ({ kind: 'organization' })],
  ])(
    'of its %s is refused once all of that is spent, by whichever keys, until the window ends',
    async (holder, its, ownerOf) => {
      const [spender, other] = [addKey(gateway), addKey(gateway)];
      const owner = ownerOf();
      limit(owner, { periodUsageLimit: '0.01', periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' });
      upstream.begin(json(completion('Hello')));

      expect((await chat(gateway, hello(call), spender)).status).toBe(200);
      const refused = await chat(gateway, hello({ ...call, user: 'another' }), other);

      const resetAt = new Date(clock.now() + 60 * MINUTE).toISOString();
      expect([refused.status, refused.json]).toEqual([
        401,
        unauthorized(
          'usage_limit_reached',
          `The ${holder} of this API key has reached ${its} recurring budget of 0.01 USD. It resets at ${resetAt}.`,
        ),
      ]);
      expect(getBudget(gateway.db, actor(), owner, clock.now()).budget).toMatchObject({
        state: 'limit_reached',
        currentPeriodUsage: '0.01',
        currentPeriodResetAt: resetAt,
      });
      clock.advance(60 * MINUTE);
      upstream.begin(json(completion('Hello')));
      expect((await chat(gateway, hello({ ...call, user: 'third' }), other)).status).toBe(200);
      limit(owner, { periodUsageLimit: null });
    },
  );
});

describe('the answer to a refused key', () => {
  it('does not say anything about the rest of the request', async () => {
    const answer = await post(gateway, '{not json', [bearer('x'), ['content-type', 'text/plain']]);

    expect([answer.status, errorOf(answer).code]).toEqual([401, 'invalid_api_key']);
  });
});
