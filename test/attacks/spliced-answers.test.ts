// An answer that a caller gets is one answer: what is wrong with a later request never ends up inside it, nor in front of it.
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { head, openRaw } from '../support/raw.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

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

const NOTHING = { path: '', headers: {}, text: '', json: null };

const heads = (text: string): string[] => text.match(/HTTP\/1\.1 \d+/g) ?? [];

const BEHIND: readonly (readonly [string, () => string])[] = [
  ['malformed', () => 'NONSENSE\r\n\r\n'],
  ['never ended', () => 'GET /health HTTP/1.1\r\nX-Slow: '],
];

it.each([...BEHIND, ['malformed, behind a call that waits', () => `${chatRequest({})}NONSENSE\r\n\r\n`]] as const)(
  'a stream comes whole, without a word of the request behind it that is %s',
  async (_, behind) => {
    const begun = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => {
      writeEvents(response, chunk({ role: 'assistant', content: 'Hel' }));
      begun.resolve(response);
    });
    const { socket, said, ended } = await openRaw(gateway.origin, chatRequest({ stream: true }));
    await said(/Hel/);
    const streaming = await begun.promise;
    upstream.begin(json(completion('Hello')));

    socket.write(behind());
    await sleep(2500);
    events(chunk({ content: 'lo' }, 'stop'))(streaming, NOTHING);

    const answers = await ended;
    expect(answers).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*data: \[DONE\]/);
    expect(heads(answers).filter((line) => line !== 'HTTP/1.1 200')).toEqual([]);
  },
);

it.each(BEHIND)(
  'the answer that is awaited comes, and nothing else, when the request behind it is %s',
  async (_, behind) => {
    const asked = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => asked.resolve(response));
    const { socket, ended } = await openRaw(gateway.origin, chatRequest({}));
    const answering = await asked.promise;

    socket.write(behind());
    await sleep(2500);
    json(completion('Hello'))(answering, NOTHING);

    const answers = await ended;
    expect([heads(answers), answers.includes('\r\nconnection: close\r\n')]).toEqual([['HTTP/1.1 200'], true]);
  },
);

it('a client that has sent nonsense behind its request and leaves ends its call', async () => {
  const left = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  upstream.begin((response) => {
    response.on('close', () => left.resolve());
    asked.resolve();
  });
  const { socket } = await openRaw(gateway.origin, `${chatRequest({})}NONSENSE\r\n\r\n`);
  await asked.promise;

  socket.destroy();

  await left.promise;
});

it('an expectation that nobody knows changes nothing', async () => {
  const { said } = await openRaw(gateway.origin, head('GET /health', 'Expect: the-unexpected'));

  expect(await said(/}$/)).toMatch(/^HTTP\/1\.1 200 [\s\S]*{/);
});
