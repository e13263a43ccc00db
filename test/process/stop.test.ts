// SIGTERM while answers are streamed.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { newDataDir } from '../support/gateway.ts';
import { type CallRow, callRows } from '../support/rows.ts';
import { chunk, startUpstream, type TestUpstream, USAGE_CHUNK, upstreamEnv, writeEvents } from '../support/upstream.ts';
import { type ServingProcess, saying, serve } from './running.ts';

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

/** A stream that has begun, and its outcome. */
async function startStream({ origin, key }: ServingProcess) {
  const asked = request(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-no-cache': 'true' },
  });
  asked.end(JSON.stringify({ model: 'large', stream: true, messages: [{ role: 'user', content: 'Hello' }] }));
  const [response] = await once(asked, 'response');
  let text = '';
  const begun = Promise.withResolvers<void>();
  const ended = new Promise<string>((resolve) => {
    response.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (text.includes('Hel')) begun.resolve();
    });
    response.on('close', () => resolve(text));
  });
  await begun.promise;
  return { ended };
}

function rows(): CallRow[] {
  const db = openDatabase(databasePath(dataDir), { readonly: true });
  try {
    return callRows({ db });
  } finally {
    db.close();
  }
}

it('streams that run are brought to their end and settled', async () => {
  const go = Promise.withResolvers<void>();
  upstream.begin(async (response) => {
    writeEvents(response, chunk({ role: 'assistant', content: 'Hel' }));
    await go.promise;
    writeEvents(response, chunk({ content: 'lo' }), chunk({}, 'stop'), USAGE_CHUNK, '[DONE]');
    response.end();
  });
  const server = await serve({ DATA_DIR: dataDir, ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8') });
  const streams = await Promise.all(Array.from({ length: 5 }, () => startStream(server)));

  server.child.kill('SIGTERM');
  await saying(server, /SIGTERM: finishing what runs\.\n/);
  go.resolve();

  const texts = await Promise.all(streams.map(({ ended }) => ended));
  expect(texts.map((text) => text.endsWith('data: [DONE]\n\n'))).toEqual(Array(5).fill(true));
  expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(rows().map(({ state, statusCode, cost }) => [state, statusCode, cost])).toEqual(
    Array(5).fill(['settled', 200, 60_000_000n]),
  );
});

it('a stream that goes on for longer than the grace is cut, and settled with what it was', async () => {
  upstream.begin((response) => writeEvents(response, chunk({ role: 'assistant', content: 'Hel' })));
  const settings = upstreamEnv('acme', upstream.origin, 'large', 'large=2/8');
  const server = await serve({ DATA_DIR: dataDir, SHUTDOWN_GRACE_MS: '300', ...settings });
  const stream = await startStream(server);

  server.child.kill('SIGTERM');

  expect(await stream.ended).not.toContain('[DONE]');
  expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(
    rows().map(({ state, statusCode, usageEstimated, cost }) => [state, statusCode, usageEstimated, cost]),
  ).toEqual([['settled', 499, 1, (8n * 2n + 1n * 8n) * 1_000_000n]]);
});
