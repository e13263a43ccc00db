// An answer that a caller gets is one answer: what is wrong with a later request never ends up inside it, nor in front of it.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { head, openRaw } from '../support/raw.ts';
import { chunk, startUpstream, type TestUpstream, upstreamEnv, writeEvents } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
    REQUEST_HEADERS_TIMEOUT_MS: '100',
    REQUEST_BODY_TIMEOUT_MS: '100',
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function chatRequest(fields: object): string {
  const body = JSON.stringify(hello({ model: 'large', ...fields }));
  return `${head(
    'POST /v1/chat/completions',
    `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  )}${body}`;
}

const heads = (text: string): string[] => text.match(/HTTP\/1\.1 \d+/g) ?? [];

it.each([
  ['malformed', () => 'NONSENSE\r\n\r\n'],
  ['never ended', () => 'GET /health HTTP/1.1\r\nX-Slow: '],
  ['malformed, behind a call that waits', () => `${chatRequest({})}NONSENSE\r\n\r\n`],
])('a stream ends without a word of the request behind it that is %s', async (_, behind) => {
  upstream.begin((response) => writeEvents(response, chunk({ role: 'assistant', content: 'Hel' })));
  const { socket, said, ended } = await openRaw(gateway.origin, chatRequest({ stream: true }));
  await said(/Hel/);

  socket.write(behind());

  expect(heads(await ended)).toEqual(['HTTP/1.1 200']);
});

it.each([
  ['malformed', 'NONSENSE\r\n\r\n'],
  ['never ended', 'GET /health HTTP/1.1\r\nX-Slow: '],
])(
  'what is wrong with a request that is %s is not said where the answer to the one before it is awaited',
  async (_, behind) => {
    const asked = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => asked.resolve(response));
    const { socket, ended } = await openRaw(gateway.origin, chatRequest({}));
    const answering = await asked.promise;

    socket.write(behind);

    expect(heads(await ended)).toEqual([]);
    if (!answering.closed) await once(answering, 'close');
  },
);

it('an expectation that nobody knows changes nothing', async () => {
  const { said } = await openRaw(gateway.origin, head('GET /health', 'Expect: the-unexpected'));

  expect(await said(/}$/)).toMatch(/^HTTP\/1\.1 200 [\s\S]*{/);
});
