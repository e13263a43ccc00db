// POST /v1/chat/completions: a provider that takes too long.
import { afterEach, describe, expect, it } from 'vitest';
import { chat, eventsOf, faulty } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow } from '../../support/rows.ts';

let gateway: TestGateway;

afterEach(() => gateway.close());

const timeout = (phase: string) => ({
  error: {
    message: `The provider took too long: ${phase}.`,
    type: 'api_error',
    param: null,
    code: 'upstream_timeout',
  },
});

const attempts = (text: string | null): unknown => JSON.parse(text ?? '');

describe('a provider that does not answer', () => {
  it.each([
    ['TOTAL_TIMEOUT_MS', 'the whole answer took too long', false],
    ['TOTAL_TIMEOUT_MS', 'the whole answer took too long', true],
    ['FIRST_BYTE_TIMEOUT_MS', 'the first byte took too long', false],
  ])('within %s is a final 504: %s (streamed: %s)', async (variable, phase, stream) => {
    gateway = await startGateway({ [variable]: '200' });

    const answer = await chat(gateway, faulty('hang', { stream }));

    expect([answer.status, answer.json, answer.headers['x-should-retry']]).toEqual([504, timeout(phase), 'false']);
    const row = callRow(gateway, answer);
    // The prompt was read by then, and costs 1 USD per million tokens.
    expect([row.statusCode, row.errorCode, row.usageEstimated]).toEqual([504, 'upstream_timeout', 1]);
    expect(row.cost).toBe(BigInt(row.promptTokens ?? 0) * 1_000_000n);
    expect(row.cost).toBeGreaterThan(0n);
    expect(attempts(row.attemptsJson)).toMatchObject([{ error_type: 'timeout', succeeded: false }]);
  });

  it('in words, with status 408, is the same', async () => {
    gateway = await startGateway();

    const answer = await chat(gateway, faulty('408'));

    expect([answer.status, answer.json]).toEqual([
      504,
      {
        error: {
          ...timeout('').error,
          message: 'The provider gave up waiting: The sandbox fails with status 408, as asked.',
        },
      },
    ]);
  });
});

describe('a provider that stalls', () => {
  it('within a whole answer is a 504', async () => {
    gateway = await startGateway({ IDLE_TIMEOUT_MS: '200' });

    const answer = await chat(gateway, faulty('stall'));

    expect([answer.status, answer.json]).toEqual([504, timeout('the answer stalled')]);
  });

  it('within a stream is an error event', async () => {
    gateway = await startGateway({ IDLE_TIMEOUT_MS: '200' });

    const answer = await chat(gateway, faulty('stall', { stream: true }));

    const { chunks, done, error } = eventsOf(answer.text);
    expect([answer.status, chunks.length, done, error]).toEqual([200, 1, false, timeout('the answer stalled').error]);
    const row = callRow(gateway, answer);
    expect([row.statusCode, row.usageEstimated, row.cost > 0n]).toEqual([504, 1, true]);
    expect(attempts(row.attemptsJson)).toMatchObject([{ error_type: 'timeout', succeeded: false }]);
  });

  it('within a stream until our own bound cuts it off is billed what was produced', async () => {
    gateway = await startGateway({ TOTAL_TIMEOUT_MS: '300' });

    const answer = await chat(gateway, faulty('stall', { stream: true }));

    const { chunks, error } = eventsOf(answer.text);
    const row = callRow(gateway, answer);
    expect([chunks.length, error]).toEqual([1, timeout('the whole answer took too long').error]);
    expect([row.state, row.statusCode, row.usageEstimated, row.cost > 0n]).toEqual(['settled', 504, 1, true]);
  });
});
