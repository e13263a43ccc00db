// POST /v1/chat/completions: the gateway cannot decide, cannot record, or has too much to do. Never a pass.
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bearer, chat, faulty, hello, post } from '../../support/chat.ts';
import { metricsOf, valuesOf } from '../../support/exposition.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { callRows, decisionRows, keySums } from '../../support/rows.ts';
import {
  chunk,
  completion,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

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
    ['are no JSON', 'UPDATE subject_rules SET compiledJson = ?', '{"enforce":'],
    ['are no rules', 'UPDATE subject_rules SET compiledJson = ?', '[]'],
    ['are empty', 'UPDATE subject_rules SET compiledJson = ?', '{}'],
    ['enforce nothing that is a rule', 'UPDATE subject_rules SET compiledJson = ?', '{"enforce":7}'],
    ['deny what is no list', 'UPDATE subject_rules SET compiledJson = ?', '{"enforce":{"deny_models":7}}'],
    ['are missing', 'DELETE FROM subject_rules WHERE subjectId <> ?', ''],
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
    gateway.db.connection.prepare('UPDATE subject_rules SET compiledJson = ?').run('{"enforce":');

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
    expect(callRows(gateway).map(({ state, cost }) => [state, cost])).toEqual([['open', 0n]]);
    expect(keySums(gateway, gateway.keyId).usage).toBe(0n);
  });
});

describe('a gateway with too much to do', () => {
  /** An upstream that begins an answer when the test says so. */
  function waiting(reply: Reply) {
    const arrived = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    upstream.begin(async (response, received) => {
      arrived.resolve();
      await released.promise;
      await reply(response, received);
    });
    return { arrived: arrived.promise, release: released.resolve };
  }

  it('refuses what exceeds the requests in flight, before it looks at the key, and works again afterwards', async () => {
    await start({ MAX_IN_FLIGHT: '1' });
    const { arrived, release } = waiting(json(completion('Hi')));

    const first = chat(gateway, hello({ model: 'large' }));
    await arrived;
    const refused = await chat(gateway, hello(), { token: 'nonsense' });
    release();

    expect((await first).status).toBe(200);
    expect([refused.status, refused.json, refused.headers['retry-after']]).toEqual([503, OVERLOADED, '1']);
    expect((await chat(gateway, hello())).status).toBe(200);
  });

  it('counts a stream until it has ended', async () => {
    await start({ MAX_IN_FLIGHT: '1' });
    const { promise: begun, resolve: begin } = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => {
      writeEvents(response, chunk({ role: 'assistant', content: 'Hi' }));
      begin(response);
    });

    const stream = chat(gateway, hello({ model: 'large', stream: true }));
    const response = await begun;
    const refused = await chat(gateway, hello());
    writeEvents(response, chunk({}, 'stop'), '[DONE]');
    response.end();

    expect([refused.status, (await stream).status]).toEqual([503, 200]);
    expect((await chat(gateway, hello())).status).toBe(200);
  });

  it('still says that it lives, that it is not ready, and how it does; its management is served', async () => {
    await start({ MAX_IN_FLIGHT: '1' });
    const { arrived, release } = waiting(json(completion('Hi')));
    const first = chat(gateway, hello({ model: 'large' }));
    await arrived;

    const answers = [];
    for (const origin of [gateway.origin, gateway.management]) {
      for (const path of ['/health', '/ready', '/v1/models', '/v1/master/keys']) {
        answers.push((await send(origin, { path })).status);
      }
    }
    const ready = await send(gateway.origin, { path: '/ready' });
    const gauges = await metricsOf(gateway);
    release();
    await first;

    expect(answers).toEqual([200, 503, 503, 503, 200, 503, 404, 401]);
    expect(ready.json).toEqual({ status: 'not_ready', reason: 'overloaded' });
    expect(valuesOf(gauges, 'requests_in_flight')).toEqual({ gateway: 1, management: 0 });
  });

  it('refuses bodies that it has no room for, and gives the room back', async () => {
    await start({ MAX_BUFFERED_BYTES: '50000' });
    const large = hello({ user: 'x'.repeat(12_000) });

    const answers = [await chat(gateway, large), await chat(gateway, large), await chat(gateway, hello())];

    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect([answers[0]?.json, answers[0]?.headers['retry-after']]).toEqual([OVERLOADED, '1']);
    for (let i = 0; i < 5; i += 1) expect((await chat(gateway, hello({ user: 'x'.repeat(3000) }))).status).toBe(200);
  });

  it('counts the bodies of all requests together, for as long as their calls run or their clients stay', async () => {
    await start({ MAX_BUFFERED_BYTES: '50000' });
    const { arrived, release } = waiting(json(completion('Hi')));
    const medium = hello({ model: 'large', user: 'x'.repeat(3000) });

    const running = chat(gateway, medium);
    await arrived;
    const besideCall = await chat(gateway, medium);
    release();
    await running;
    const staying = await unfinished('x'.repeat(14_000), 20_000);
    while (((await held())[1] ?? 0) < 14_000);
    const besideClient = await chat(gateway, medium);
    staying.destroy();
    while (((await held())[1] ?? 0) > 0);

    expect([besideCall.status, besideClient.status, (await chat(gateway, medium)).status]).toEqual([503, 503, 200]);
  });

  it('gives back each place once, however a request ends', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    upstream.begin((response, received) => {
      if (received.text.includes('"stream":true')) writeEvents(response, chunk({ content: 'Hi' }));
    });
    const leaving = hello({ model: 'large' });

    const endings: Promise<unknown>[] = [
      chat(gateway, hello()),
      chat(gateway, hello({ stream: true })),
      chat(gateway, faulty('cut', { stream: true })),
      chat(gateway, faulty('500')),
      chat(gateway, hello(), { token: 'nonsense' }),
      chat(gateway, '{'),
      post(gateway, 'text', [bearer(gateway.firstRun.gatewayKey)]),
      send(gateway.origin, { path: '/nothing' }),
      send(gateway.origin, { path: '/v1/models', headers: [['Host', 'evil.example']] }),
      send(gateway.management, { path: '/v1/master/keys' }),
    ];
    for (const milliseconds of [0, 1, 3, 10, 30]) {
      endings.push(
        leave(JSON.stringify(leaving), milliseconds),
        leave(JSON.stringify({ ...leaving, stream: true }), milliseconds),
      );
      endings.push(leave('x'.repeat(500), milliseconds, 1000), leave(JSON.stringify(leaving).repeat(2), milliseconds));
    }
    await Promise.all(endings);
    while ((await held()).some((value) => value > 0));

    // All of them have arrived, and they stay given back.
    expect((await chat(gateway, hello())).status).toBe(200);
    expect(await held()).toEqual([0, 0]);
  });

  /** Requests of the gateway in flight, and memory of their bodies. */
  async function held(): Promise<number[]> {
    const metrics = await metricsOf(gateway);
    return ['requests_in_flight', 'buffered_body_bytes'].map((name) => valuesOf(metrics, name).gateway ?? Number.NaN);
  }

  /** Sends a request whose body does not end, if `length` says so; resolves when it has been sent. */
  function unfinished(body: string, length = 10_000): Promise<Socket> {
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
      'Content-Type: application/json',
      `Content-Length: ${length}`,
    ];
    const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1').on('error', () => {});
    return new Promise((resolve) => {
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, () => resolve(socket));
    });
  }

  /** Sends a request, and leaves after a while. */
  async function leave(body: string, milliseconds: number, length = body.length): Promise<void> {
    const socket = await unfinished(body, length);
    await sleep(milliseconds);
    socket.destroy();
  }
});
