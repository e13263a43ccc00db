// POST /v1/chat/completions: the gateway cannot decide, cannot record, or has too much to do. Never a pass.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chat, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { callRows, decisionRows, keySums } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

const start = async (env: Readonly<Record<string, string>> = {}) => {
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...env });
};

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const unavailable = (code: string, message: string) => ({ error: { message, type: 'api_error', param: null, code } });
const NO_POLICY = unavailable('policy_unavailable', 'The policy could not be evaluated, so the call was refused.');
const OVERLOADED = unavailable('overloaded', 'The gateway is overloaded. Try again shortly.');
const NO_STORE = unavailable('overloaded', 'The service cannot record calls at the moment. Try again.');

const from = { headers: [['x-forwarded-for', '192.0.2.7']] } as const;

describe('a policy that cannot be evaluated', () => {
  beforeEach(() => start());

  it.each([
    ['are no JSON', 'UPDATE subject_rules SET compiled_json = ?', '{"enforce":'],
    ['are no rules', 'UPDATE subject_rules SET compiled_json = ?', '[]'],
    ['are empty', 'UPDATE subject_rules SET compiled_json = ?', '{}'],
    ['enforce nothing that is a rule', 'UPDATE subject_rules SET compiled_json = ?', '{"enforce":7}'],
    ['deny what is no list', 'UPDATE subject_rules SET compiled_json = ?', '{"enforce":{"deny_models":7}}'],
    ['are missing', 'DELETE FROM subject_rules WHERE subject_id <> ?', ''],
  ])(
    'because the stored rules %s is a 503, sent nowhere and recorded nowhere as a pass',
    async (_, statement, text) => {
      upstream.begin(json(completion('Hi')));
      gateway.db.connection.prepare(statement).run(text);

      const answers = [
        await chat(gateway, hello({ model: 'large' }), from),
        await chat(gateway, hello({ model: 'large' })),
      ];

      expect(answers.map(({ status, json: body }) => [status, body])).toEqual([
        [503, NO_POLICY],
        [503, NO_POLICY],
      ]);
      expect([upstream.received, callRows(gateway), decisionRows(gateway)]).toEqual([[], [], []]);
    },
  );

  it('is a 503 of the model list as well', async () => {
    gateway.db.connection.prepare('UPDATE subject_rules SET compiled_json = ?').run('{"enforce":');

    const headers = [['authorization', `Bearer ${gateway.firstRun.gatewayKey}`]] as const;
    const answer = await send(gateway.origin, { path: '/v1/models', headers });

    expect([answer.status, answer.json]).toEqual([503, NO_POLICY]);
  });
});

describe('a database that another process holds', () => {
  beforeEach(() => start());

  it('is a 503 before anything is sent; the next call is served', async () => {
    upstream.begin(json(completion('Hi')));
    gateway.db.connection.exec('BEGIN IMMEDIATE');
    const refused = await chat(gateway, hello({ model: 'large' }));
    gateway.db.connection.exec('ROLLBACK');

    expect([refused.status, refused.json, refused.headers['retry-after']]).toEqual([503, NO_STORE, '1']);
    expect(upstream.received).toEqual([]);
    expect((await chat(gateway, hello({ model: 'large' }))).status).toBe(200);
    expect(callRows(gateway)).toHaveLength(1);
  });

  it('at the settlement leaves the call open, to be recovered, and the answer is a 503', async () => {
    upstream.begin((response, received) => {
      gateway.db.connection.exec('BEGIN IMMEDIATE');
      return json(completion('Hi'))(response, received);
    });

    const answer = await chat(gateway, hello({ model: 'large' }));
    gateway.db.connection.exec('ROLLBACK');

    expect([answer.status, answer.json]).toEqual([503, NO_STORE]);
    expect(callRows(gateway).map(({ state, cost_pico }) => [state, cost_pico])).toEqual([['open', 0n]]);
    expect(keySums(gateway, gateway.keyId).usage_pico).toBe(0n);
  });
});

describe('a gateway with too much to do', () => {
  it('refuses what exceeds the requests in flight, before it looks at the key, and serves again afterwards', async () => {
    await start({ MAX_IN_FLIGHT: '1' });
    const { promise: arrived, resolve: tell } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    upstream.begin(async (response, received) => {
      tell();
      await released;
      await json(completion('Hi'))(response, received);
    });

    const first = chat(gateway, hello({ model: 'large' }));
    await arrived;
    const refused = await chat(gateway, hello(), { token: 'nonsense' });
    release();

    expect((await first).status).toBe(200);
    expect([refused.status, refused.json, refused.headers['retry-after']]).toEqual([503, OVERLOADED, '1']);
    expect((await chat(gateway, hello())).status).toBe(200);
  });

  it('refuses bodies that it has no room for, and gives the room back', async () => {
    await start({ MAX_BUFFERED_BYTES: '5000' });
    const large = hello({ user: 'x'.repeat(6000) });

    const answers = [await chat(gateway, large), await chat(gateway, large), await chat(gateway, hello())];

    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect(answers[0]?.json).toEqual(OVERLOADED);
    for (let i = 0; i < 5; i += 1) expect((await chat(gateway, hello({ user: 'x'.repeat(3000) }))).status).toBe(200);
  });
});
