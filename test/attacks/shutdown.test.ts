// A stop that someone holds up: only calls that have been admitted get the grace, and nothing else keeps the process alive.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { head, openRaw } from '../support/raw.ts';
import { callRows } from '../support/rows.ts';
import { chunk, startUpstream, type TestUpstream, USAGE_CHUNK, upstreamEnv, writeEvents } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

/** Nothing of a test lasts as long. */
const GRACE = { SHUTDOWN_GRACE_MS: '600000' };

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...GRACE });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const chatHead = (length: number, ...more: string[]): string =>
  head(
    'POST /v1/chat/completions',
    `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    ...more,
  );

const chatRequest = (...more: string[]): string => {
  const body = JSON.stringify(hello({ model: 'large', stream: true }));
  return chatHead(body.length, ...more) + body;
};

/** A stream that has begun and that ends when the test says so. */
async function running() {
  const go = Promise.withResolvers<void>();
  upstream.begin(async (response) => {
    writeEvents(response, chunk({ role: 'assistant', content: 'Hel' }));
    await go.promise;
    writeEvents(response, chunk({ content: 'lo' }), chunk({}, 'stop'), USAGE_CHUNK, '[DONE]');
    response.end();
  });
  const connection = await openRaw(gateway.origin, chatRequest());
  await connection.said(/Hel/);
  return { ...connection, go: go.resolve };
}

describe('at a stop', () => {
  it.each([
    ['that has sent nothing', () => ''],
    ['that has sent half of its headers', () => chatHead(1000).slice(0, -10)],
    ['that has sent half of its body', () => `${chatHead(1000)}{"model"`],
    [
      'that has sent one piece of its body',
      () => `${head('POST /v1/chat/completions', 'Transfer-Encoding: chunked')}1\r\n`,
    ],
    ['that waits to be told to go on', () => chatHead(1000, 'Expect: 100-continue')],
    ['whose next request is half sent', () => `${head('GET /health')}${chatHead(1000)}{`],
  ])('a connection ends at once %s', async (_, bytes) => {
    const connections = [await openRaw(gateway.origin, bytes()), await openRaw(gateway.management, bytes())];
    const { said } = await openRaw(gateway.origin, head('GET /health'));
    await said(/"ok"}/);

    await gateway.container.close();

    await Promise.all(connections.map(({ ended }) => ended));
    expect(callRows(gateway)).toEqual([]);
  });

  it('idle connections end at once', async () => {
    const connections = [];
    for (const origin of [gateway.origin, gateway.management]) {
      const connection = await openRaw(origin, head('GET /health'));
      await connection.said(/"ok"}/);
      connections.push(connection);
    }

    await gateway.container.close();

    await Promise.all(connections.map(({ ended }) => ended));
  });

  it('a call that has been admitted comes to its end, and its connection with it', async () => {
    const { go, ended } = await running();
    const idle = await openRaw(gateway.origin, chatHead(1000));

    const closed = gateway.container.close();
    await idle.ended;
    go();

    expect(await ended).toMatch(/"lo"[\s\S]*data: \[DONE\]/);
    await closed;
    expect(callRows(gateway).map(({ state, statusCode }) => [state, statusCode])).toEqual([['settled', 200]]);
  });

  it('a call that was sent whole behind another one is admitted too', async () => {
    const { go, ended, socket, said } = await running();
    socket.write(chatRequest('X-Request-Id: the-second'));
    while (upstream.received.length < 2) await sleep(10);
    const closed = gateway.container.close();
    go();

    await said(/the-second[\s\S]*data: \[DONE\]/);
    await ended;
    await closed;
    expect(callRows(gateway).map(({ statusCode }) => statusCode)).toEqual([200, 200]);
  });

  it('nothing new is taken: no connection, and no request on one that still waits for its answer', async () => {
    const { go, ended, socket } = await running();
    const closed = gateway.container.close();

    const refused = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
    const [error] = await once(refused, 'error');
    socket.write(chatRequest());
    await sleep(100);
    go();

    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect((await ended).split('HTTP/1.1 200').length).toBe(2);
    await closed;
    expect([callRows(gateway).length, upstream.received.length]).toEqual([1, 1]);
  });
});
