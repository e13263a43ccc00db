// Calls of tools that take long: signs of life for clients that ask for them, and an end for clients that leave.
import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, messagesOf, rpc } from '../../support/mcp.ts';
import { callRows } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

afterEach(() => void vi.useRealTimers());

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const params = (more: object = {}) => ({
  name: 'chat',
  arguments: { model: 'acme/large', messages: [{ role: 'user', content: 'Hello' }] },
  ...more,
});

/** The messages of a call that takes 25 seconds, for a client that takes events. */
async function messagesOfLongCall(progressToken: string): Promise<unknown[]> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  upstream.begin(async (response, received) => {
    await vi.advanceTimersByTimeAsync(25_000);
    await json(completion('At last.'))(response, received);
  });
  const headers = [['accept', 'application/json, text/event-stream']] as const;
  const answer = await rpc(gateway, 'tools/call', params({ _meta: { progressToken } }), { headers });
  return messagesOf(answer.text);
}

const RESULT = { id: 1, result: { content: [{ text: 'At last.' }] } };

describe('progress', () => {
  it('is reported every ten seconds to a client that gave a token and takes events', async () => {
    const progress = (seconds: number) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'p1', progress: seconds, message: `Running for ${seconds} seconds.` },
    });

    expect(await messagesOfLongCall('p1')).toMatchObject([progress(10), progress(20), RESULT]);
  });

  it('is not reported by a token so long that repeating it would fill the memory', async () => {
    expect(await messagesOfLongCall('p'.repeat(257))).toMatchObject([RESULT]);
  });

  it('is not reported to a client that takes JSON alone', async () => {
    upstream.begin(json(completion('Hello')));
    const answer = await rpc(gateway, 'tools/call', params({ _meta: { progressToken: 'p1' } }));

    expect([answer.headers['content-type'], answer.json]).toMatchObject(['application/json', { id: 1 }]);
  });
});

describe.each(['application/json', 'application/json, text/event-stream', 'text/event-stream'])(
  'a client that takes %s',
  (accept) => {
    it('and leaves ends the call at the provider', async () => {
      const [{ promise: asked, resolve: ask }, { promise: left, resolve: leave }] = [
        Promise.withResolvers<void>(),
        Promise.withResolvers<void>(),
      ];
      upstream.begin((response) => {
        response.on('close', leave);
        ask();
      });
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params() });
      const outgoing = request(`${gateway.origin}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.firstRun.gatewayKey}`,
          'content-type': 'application/json',
          accept,
        },
      });
      outgoing.on('error', () => {});
      outgoing.end(body);
      await asked;
      outgoing.destroy();
      await left;

      const last = () => callRows(gateway).at(-1);
      while (last()?.state === 'open') await sleep(5);
      expect(last()).toMatchObject({ tool: 'chat', statusCode: 499, errorCode: 'client_closed_request' });
    });
  },
);

it('a stop of the gateway ends streams for notifications at once', async () => {
  const other = await startGateway();
  const outgoing = request(`${other.origin}/mcp`, {
    headers: { authorization: `Bearer ${other.firstRun.gatewayKey}`, accept: 'text/event-stream' },
  });
  outgoing.end();
  const [response] = await once(outgoing, 'response');
  response.resume();
  const ended = once(response, 'end');
  await other.close();

  await ended;
});

it('a prompt of 8 MB is answered or refused as on the REST endpoint', async () => {
  upstream.begin(json(completion('Long.')));
  const messages = [{ role: 'user', content: 'a'.repeat(8_000_000) }];
  const answer = await callTool(gateway, 'chat', { model: 'acme/large', messages });

  expect([answer.status, upstream.received.length]).toEqual([200, 1]);
});
