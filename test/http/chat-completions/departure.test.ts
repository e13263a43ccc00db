// POST /v1/chat/completions: a client that goes away, or that reads slowly.
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventsOf, hello, streamedText } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow, callRows, keySums, settled } from '../../support/rows.ts';
import {
  chunk,
  startUpstream,
  type TestUpstream,
  USAGE,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Begins a call and gives the open answer; a call that is not streamed has none before its end. */
function open(body: object) {
  const outgoing = request(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
  });
  outgoing.on('error', () => {});
  outgoing.end(JSON.stringify(body));
  const answer = new Promise<IncomingMessage>((resolve) => outgoing.on('response', resolve));
  return { outgoing, answer };
}

const requestId = (answer: IncomingMessage): string => String(answer.headers['x-request-id']);

/** An upstream that begins as told, never ends by itself, and says when its caller has left. */
function endless(begin: (response: ServerResponse) => void): { arrived: Promise<void>; left: Promise<void> } {
  const arrived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  upstream.begin((response) => {
    response.on('close', () => left.resolve());
    begin(response);
    arrived.resolve();
  });
  return { arrived: arrived.promise, left: left.promise };
}

describe('a client that leaves', () => {
  it('before a whole answer cancels the call upstream, and is billed an estimate of the prompt, which was read', async () => {
    const { arrived, left } = endless(() => {});
    const { outgoing } = open(hello({ model: 'large' }));
    await arrived;
    const id = callRows(gateway).at(-1)?.requestId ?? '';
    expect(callRows(gateway).at(-1)?.state).toBe('open');

    outgoing.destroy();

    await left;
    const row = await settled(gateway, id);
    expect(row).toMatchObject({
      state: 'settled',
      statusCode: 499,
      errorCode: 'client_closed_request',
      promptTokens: 8,
      completionTokens: 0,
      usageEstimated: 1,
      cost: 8n * 2_000_000n,
      providerId: 'acme',
      modelId: 'large',
    });
  });

  it('within a stream cancels the call upstream and is billed an estimate of what was produced', async () => {
    const before = keySums(gateway, gateway.keyId).usage;
    const { left } = endless((response) => writeEvents(response, chunk({ content: 'Hello, world!' })));
    const { outgoing, answer } = open(hello({ model: 'large', stream: true }));
    const response = await answer;
    await once(response, 'data');

    outgoing.destroy();

    await left;
    const row = await settled(gateway, requestId(response));
    const cost = 8n * 2_000_000n + 4n * 8_000_000n;
    expect(row).toMatchObject({
      state: 'settled',
      statusCode: 499,
      errorCode: 'client_closed_request',
      promptTokens: 8,
      completionTokens: 4,
      usageEstimated: 1,
      cost: cost,
      providerId: 'acme',
    });
    expect(keySums(gateway, gateway.keyId).usage).toBe(before + cost);
  });

  it('within a stream is billed what the provider itself had reported, if it had', async () => {
    const { left } = endless((response) => writeEvents(response, chunk({ content: 'Hi' }, null, { usage: USAGE })));
    const { outgoing, answer } = open(hello({ model: 'large', stream: true }));
    const response = await answer;
    await once(response, 'data');

    outgoing.destroy();

    await left;
    expect(await settled(gateway, requestId(response))).toMatchObject({ usageEstimated: 0, cost: 60_000_000n });
  });

  it('before the first byte of a stream cancels the call upstream, and is billed for the prompt too', async () => {
    const { arrived, left } = endless(() => {});
    const { outgoing } = open(hello({ model: 'large', stream: true }));
    await arrived;
    const id = callRows(gateway).at(-1)?.requestId ?? '';

    outgoing.destroy();

    await left;
    expect(await settled(gateway, id)).toMatchObject({
      statusCode: 499,
      promptTokens: 8,
      completionTokens: 0,
      cost: 8n * 2_000_000n,
    });
  });

  it('is never followed by another attempt', async () => {
    const { arrived, left } = endless(() => {});
    const { outgoing } = open(hello({ model: 'large' }));
    await arrived;

    outgoing.destroy();

    await left;
    await settled(gateway, callRows(gateway).at(-1)?.requestId ?? '');
    expect(upstream.received).toHaveLength(1);
  });
});

const PIECE = 'x'.repeat(64 * 1024);
const PIECES = 800;

/** An upstream with more to say than all buffers hold; `written` tells how much of it has gone out. */
function torrent(): { written: number; left: Promise<void> } {
  const left = Promise.withResolvers<void>();
  const progress = { written: 0, left: left.promise };
  upstream.begin(async (response) => {
    response.on('close', left.resolve);
    for (; progress.written < PIECES; progress.written += 1) {
      if (response.destroyed) return;
      writeEvents(response, chunk({ content: PIECE }));
      if (response.writableNeedDrain) await Promise.race([once(response, 'drain'), left.promise]);
    }
    writeEvents(response, chunk({}, 'stop'), USAGE_CHUNK, '[DONE]');
    response.end();
  });
  return progress;
}

/** Waits until the buffers between upstream and client are full: nothing moves until the client reads. */
async function stuck(progress: { readonly written: number }): Promise<void> {
  let seen = -1;
  while (seen !== progress.written) {
    seen = progress.written;
    await sleep(300);
  }
}

describe('a client that reads slowly', () => {
  it('holds the upstream back instead of filling the memory, and gets the whole stream in the end', async () => {
    const progress = torrent();
    const { answer } = open(hello({ model: 'large', stream: true }));
    const response = await answer;

    await stuck(progress);
    expect(progress.written).toBeLessThan(PIECES);

    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part);
    const { chunks, done } = eventsOf(Buffer.concat(parts).toString('utf8'));
    expect([streamedText(chunks).length, done]).toEqual([PIECES * PIECE.length, true]);
    expect(callRow(gateway, response).state).toBe('settled');
  });

  it('and leaves while the stream waits for it is billed what was produced', async () => {
    const progress = torrent();
    const { outgoing, answer } = open(hello({ model: 'large', stream: true }));
    const response = await answer;
    await stuck(progress);

    outgoing.destroy();

    await progress.left;
    const row = await settled(gateway, requestId(response));
    expect([row.state, row.statusCode, row.usageEstimated]).toEqual(['settled', 499, 1]);
    expect(row.completionTokens).toBeGreaterThan(0);
    expect(row.completionTokens % (PIECE.length / 8)).toBe(0); // eight of the letters are a token
  });
});
