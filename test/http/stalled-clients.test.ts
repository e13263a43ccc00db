// Clients that take nothing of their answer: they may not hold a place for ever.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { chat, hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { callRows, settled } from '../support/rows.ts';
import {
  chunk,
  completion,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let client: Socket | undefined;

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
    IDLE_TIMEOUT_MS: '500',
    KEEP_ALIVE_COMMENT_MS: '50',
    MAX_IN_FLIGHT: '1',
  });
});

afterEach(async () => {
  client?.destroy();
  await gateway.close();
  await upstream.close();
});

/** Sends a chat request, and reads nothing of what comes back. */
function sendAndStall(more: object): void {
  const body = JSON.stringify(hello({ model: 'large', ...more }));
  client = connect(Number(new URL(gateway.origin).port), '127.0.0.1').pause();
  client
    .on('error', () => {})
    .write(
      [
        'POST /v1/chat/completions HTTP/1.1',
        'Host: localhost',
        `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    );
}

const PIECE = 'x'.repeat(64 * 1024);

it('a stream that nobody reads is ended as if its client had left', async () => {
  const left = Promise.withResolvers<void>();
  upstream.begin(async (response) => {
    response.on('close', left.resolve);
    while (!response.destroyed) {
      writeEvents(response, chunk({ content: PIECE }));
      if (response.writableNeedDrain) await Promise.race([once(response, 'drain'), left.promise]);
    }
  });

  sendAndStall({ stream: true });

  await left.promise;
  const row = await settled(gateway, callRows(gateway)[0]?.requestId ?? '');
  expect([row.statusCode, row.errorCode]).toEqual([499, 'client_closed_request']);
  expect((await chat(gateway, hello())).status).toBe(200);
});

it('a whole answer that nobody reads gives its place back', async () => {
  upstream.begin(json(completion(PIECE.repeat(200))));

  sendAndStall({});
  await expect.poll(() => callRows(gateway).length).toBe(1);

  while ((await chat(gateway, hello())).status === 503);
  expect(callRows(gateway).map(({ statusCode }) => statusCode)).toEqual([200, 200]);
});

it('a client that waits longer than that for its answer gets it', async () => {
  upstream.begin(async (response, received) => {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await json(completion('Hello'))(response, received);
  });

  expect((await chat(gateway, hello({ model: 'large' }))).status).toBe(200);
});
