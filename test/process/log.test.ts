// What the process says on its own account.
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { chunk, startUpstream, type TestUpstream, upstreamEnv, writeEvents } from '../support/upstream.ts';
import { serve } from './running.ts';

let dataDir: string;
let upstream: TestUpstream;

beforeEach(async () => {
  dataDir = newDataDir();
  upstream = await startUpstream();
});

afterEach(async () => {
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const started = (more: Record<string, string> = {}) =>
  serve({ DATA_DIR: dataDir, LOG_LEVEL: 'info', ...upstreamEnv('acme', upstream.origin, 'large'), ...more });

/** Lines about the start, and about a machine that is busy. */
const UNRELATED = /"msg":"(?:portcullis |The sandbox (?:answers|draws) )|"the event loop was late/;

const lines = (said: string): Record<string, unknown>[] =>
  said
    .split('\n')
    .filter((line) => line.startsWith('{') && !UNRELATED.test(line))
    .map((line): Record<string, unknown> => JSON.parse(line));

const body = (more: object = {}): string =>
  JSON.stringify({ model: 'large', messages: [{ role: 'user', content: 'Hello' }], ...more });

it('a failure of ours is logged once, with its cause and the request id; the caller learns of neither', async () => {
  const { origin, key, child, ended } = await started();
  const db = openDatabase(databasePath(dataDir));
  db.connection.prepare('UPDATE subject_rules SET compiledJson = ?').run('{"broken');
  db.close();

  const answer = await send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(key ?? ''), JSON_TYPE],
    body: body(),
  });

  child.kill('SIGTERM');
  const { stdout, stderr } = await ended;
  expect([answer.status, answer.text.includes('broken'), stderr]).toEqual([503, false, '']);
  expect(lines(stdout)).toEqual([
    {
      level: 50,
      time: expect.any(String),
      requestId: answer.headers['x-request-id'],
      error: expect.stringContaining('PolicyFailure'),
      msg: 'failure',
    },
  ]);
});

it('a client that leaves a stream is no failure', async () => {
  const { origin, key, child, ended } = await started();
  const { promise: left, resolve } = Promise.withResolvers<void>();
  upstream.begin((response) => {
    response.on('close', resolve);
    writeEvents(response, chunk({ content: 'Hi' }));
  });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const outgoing = request(`${origin}/v1/chat/completions`, { method: 'POST', headers });
  outgoing.on('error', () => {});
  outgoing.on('response', (response) => response.once('data', () => outgoing.destroy()));
  outgoing.end(body({ stream: true }));
  await left;

  child.kill('SIGTERM');

  expect(lines((await ended).stdout)).toEqual([]);
});

it.each([
  ['resets its connection before the answer', {}],
  ['resets its connection in a stream', { stream: true }],
])('a client that %s is no failure', async (_, more) => {
  const { origin, key, child, ended } = await started();
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  upstream.begin((response) => {
    response.on('close', leave);
    if ('stream' in more) writeEvents(response, chunk({ content: 'Hi' }));
    arrive();
  });
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  const text = body(more);
  const headers = ['Host: localhost', `Authorization: Bearer ${key}`, 'Content-Type: application/json'];
  const length = `Content-Length: ${Buffer.byteLength(text)}`;
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${[...headers, length].join('\r\n')}\r\n\r\n${text}`);
  await arrived;
  if ('stream' in more) await once(socket, 'data');

  socket.resetAndDestroy();
  await left;

  child.kill('SIGTERM');
  expect(lines((await ended).stdout)).toEqual([]);
});

it('a refusal for lack of room is no failure', async () => {
  const { origin, key, child, ended } = await serve({ DATA_DIR: dataDir, LOG_LEVEL: 'info', MAX_BUFFERED_BYTES: '10' });

  const answer = await send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(key ?? ''), JSON_TYPE],
    body: body(),
  });

  child.kill('SIGTERM');
  expect([answer.status, lines((await ended).stdout)]).toEqual([503, []]);
});

it.each([
  ['info', []],
  [
    'debug',
    [{ level: 20, said: 'The provider failed: broken with [redacted] and [redacted]', msg: 'the provider said' }],
  ],
])('at level %s a failed attempt is logged, with the words of the provider at debug only', async (level, words) => {
  const { origin, key, child, ended } = await started({ LOG_LEVEL: level });
  upstream.begin((response) => {
    response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'broken with secret-of-acme and sk-abcdefghijkl' } }));
  });
  await send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(key ?? ''), JSON_TYPE],
    body: body(),
  });

  child.kill('SIGTERM');

  const { stdout } = await ended;
  expect(stdout.includes('LOG_LEVEL=debug writes the words with which providers')).toBe(level === 'debug');
  expect(lines(stdout)).toMatchObject([
    {
      level: 40,
      callId: expect.stringMatching(/^call_/),
      mapping: 'acme/large',
      errorType: 'upstream_error',
      detail: 'The provider failed. (status 500)',
      msg: 'attempt failed',
    },
    ...words,
  ]);
});

it.runIf(existsSync('/dev/full'))('a log without room is told once, and ends no call and no stop', async () => {
  const { origin, child, complained, ended } = await serve({ DATA_DIR: dataDir, ACCESS_LOG: '/dev/full' });
  const health = async () => (await send(origin, { path: '/health' })).status;
  expect(await health()).toBe(200);
  await vi.waitFor(() => expect(complained()).toContain('\n'), 10_000);

  expect(await health()).toBe(200);
  child.kill('SIGTERM');

  expect(await ended).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^portcullis: the log cannot be written to \/dev\/full: ENOSPC.*\n$/),
  });
});

it('a reader of the log that hangs up ends no call and no stop', async () => {
  const { origin, child, complained, ended } = await serve({ DATA_DIR: dataDir, ACCESS_LOG: 'stdout' });
  child.stdout?.destroy();
  const health = async () => (await send(origin, { path: '/health' })).status;
  expect(await health()).toBe(200);
  await vi.waitFor(() => expect(complained()).toContain('\n'), 10_000);

  expect(await health()).toBe(200);
  child.kill('SIGTERM');

  expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/^portcullis: [^\n]*EPIPE[^\n]*\n$/) });
});
