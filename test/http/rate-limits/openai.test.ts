// The `openai` package as its users have it: it waits as long as the answer says, and asks again.
import OpenAI, { RateLimitError } from 'openai';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { thrown } from '../../support/promises.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '1' });
});

afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const hello = { model: 'sandbox-free', messages: [{ role: 'user' as const, content: 'Hello' }] };

/** @param sent when each request was sent, in the test's time */
const client = (maxRetries: number, sent: number[] = []): OpenAI =>
  new OpenAI({
    apiKey: gateway.firstRun.gatewayKey,
    baseURL: `${gateway.origin}/v1`,
    maxRetries,
    fetch: (url, init) => {
      sent.push(Date.now());
      return fetch(url, init);
    },
  });

it('retries when the minute is over, and is served', async () => {
  const sent: number[] = [];
  const openai = client(1, sent);
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] });
  await openai.chat.completions.create(hello);

  const second = openai.chat.completions.create(hello);
  while (sent.length < 3) await vi.advanceTimersByTimeAsync(500);

  expect((await second).choices[0]?.message.content).toBe('You said: Hello');
  expect([sent.length, (sent[2] ?? 0) - (sent[1] ?? 0) >= 60_000]).toEqual([3, true]);
  expect(callRows(gateway)).toHaveLength(2);
});

it('tells of it as a RateLimitError where it does not retry', async () => {
  const openai = client(0);
  await openai.chat.completions.create(hello);

  const error = await thrown(openai.chat.completions.create(hello));

  expect(error).toBeInstanceOf(RateLimitError);
  expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' });
});
