// What Anthropic's answers cost. `input_tokens` leaves cached tokens out there; writes cost by how long they are kept.
import { describe, expect, it } from 'vitest';
import { parseUsd, parseUsdPerMillion as perMillion } from '../../../src/domain/limits.ts';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { type Lists, streamBill, wholeBill } from './bill.ts';

/** Claude Sonnet 4.5 with its prices for long prompts. */
const SONNET: Lists = {
  prices: {
    prompt: perMillion('3'),
    completion: perMillion('15'),
    input_cache_read: perMillion('0.3'),
    input_cache_write: perMillion('3.75'),
    input_cache_write_1h: perMillion('6'),
    web_search: parseUsd('0.01'),
  },
  tiers: [
    {
      abovePromptTokens: 200_000,
      prices: {
        prompt: perMillion('6'),
        completion: perMillion('22.5'),
        input_cache_read: perMillion('0.6'),
        input_cache_write: perMillion('7.5'),
        input_cache_write_1h: perMillion('12'),
        web_search: parseUsd('0.01'),
      },
    },
  ],
};

const answer = (usage: object): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage,
});

const event = (type: string, more: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

const stream = (start: object, ...ends: object[]): string =>
  [
    event('message_start', { message: { ...answer(start), content: [], stop_reason: null } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
    event('content_block_stop', { index: 0 }),
    ...ends.map((usage) => event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage })),
    event('message_stop', {}),
  ].join('');

/** Read from the cache, written to it for five minutes and for an hour. */
const CACHED = {
  input_tokens: 21,
  cache_creation_input_tokens: 1500,
  cache_read_input_tokens: 18_086,
  cache_creation: { ephemeral_5m_input_tokens: 456, ephemeral_1h_input_tokens: 1044 },
};

const CACHED_BILL = {
  usage: {
    promptTokens: 21 + 1500 + 18_086,
    cachedTokens: 18_086,
    cacheWrite5mTokens: 456,
    cacheWrite1hTokens: 1044,
    completionTokens: 393,
  },
  parts: {
    input: 21n * 3_000_000n,
    cachedInput: 18_086n * 300_000n,
    cacheWriteInput: 456n * 3_750_000n + 1044n * 6_000_000n,
    output: 393n * 15_000_000n,
  },
  total: '0.0193578', // 0.000063 + 0.0054258 + 0.00171 + 0.006264 + 0.005895
};

describe("the cost of Anthropic's answers", () => {
  it('takes reads, writes of five minutes and writes of an hour each once, at their own prices', () => {
    expect(wholeBill(anthropicAdapter, answer({ ...CACHED, output_tokens: 393 }), SONNET)).toEqual(CACHED_BILL);
  });

  it('is the same in a stream, whose start and end both report', async () => {
    const start = { ...CACHED, output_tokens: 1 };

    expect(await streamBill(anthropicAdapter, SONNET, stream(start, { output_tokens: 393 }))).toEqual(CACHED_BILL);
    expect(await streamBill(anthropicAdapter, SONNET, stream(start, { ...CACHED, output_tokens: 393 }))).toEqual(
      CACHED_BILL,
    );
  });

  it('takes what a stream reports last, whatever its start meant by it', async () => {
    // Servers that speak this API count the whole prompt as input first, and tell the cached part of it at the end.
    const events = stream(
      { input_tokens: 20_000, cache_read_input_tokens: 0, output_tokens: 0 },
      { input_tokens: 1914, cache_read_input_tokens: 18_086, output_tokens: 10 },
    );

    expect(await streamBill(anthropicAdapter, SONNET, events)).toEqual({
      usage: { promptTokens: 20_000, cachedTokens: 18_086, completionTokens: 10 },
      parts: { input: 1914n * 3_000_000n, cachedInput: 18_086n * 300_000n, output: 10n * 15_000_000n },
      total: '0.0113178', // 0.005742 + 0.0054258 + 0.00015
    });
  });

  it('takes writes that are not split by time as writes of five minutes', () => {
    const usage = { input_tokens: 4, cache_creation_input_tokens: 2051, cache_read_input_tokens: 0, output_tokens: 1 };

    expect(wholeBill(anthropicAdapter, answer(usage), SONNET)).toEqual({
      usage: { promptTokens: 2055, cacheWrite5mTokens: 2051, completionTokens: 1 },
      parts: { input: 4n * 3_000_000n, cacheWriteInput: 2051n * 3_750_000n, output: 15_000_000n },
      total: '0.00771825', // 0.000012 + 0.00769125 + 0.000015
    });
  });

  it.each([
    [199_990, { input: 10n * 3_000_000n, cachedInput: 199_990n * 300_000n, output: 100n * 15_000_000n }, '0.061527'],
    [199_991, { input: 10n * 6_000_000n, cachedInput: 199_991n * 600_000n, output: 100n * 22_500_000n }, '0.1223046'],
  ])(
    'takes all tokens at the higher prices when the prompt, cached tokens included, exceeds 200,000: 10 + %i',
    (cached, parts, total) => {
      const usage = { input_tokens: 10, cache_read_input_tokens: cached, output_tokens: 100 };

      expect(wholeBill(anthropicAdapter, answer(usage), SONNET)).toEqual({
        usage: { promptTokens: 10 + cached, cachedTokens: cached, completionTokens: 100 },
        parts,
        total,
      });
    },
  );

  it('takes web searches at their price each', () => {
    const usage = { input_tokens: 105, output_tokens: 6039, server_tool_use: { web_search_requests: 3 } };

    expect(wholeBill(anthropicAdapter, answer(usage), SONNET)).toEqual({
      usage: { promptTokens: 105, completionTokens: 6039, webSearches: 3 },
      parts: { input: 105n * 3_000_000n, output: 6039n * 15_000_000n, webSearch: 3n * 10_000_000_000n },
      total: '0.1209', // 0.000315 + 0.090585 + 0.03
    });
  });

  it('takes thoughts as the output tokens that they are among', () => {
    const usage = { input_tokens: 10, output_tokens: 500, output_tokens_details: { thinking_tokens: 400 } };

    expect(wholeBill(anthropicAdapter, answer(usage), SONNET)).toEqual({
      usage: { promptTokens: 10, completionTokens: 500, reasoningTokens: 400 },
      parts: { input: 10n * 3_000_000n, output: 500n * 15_000_000n },
      total: '0.00753',
    });
  });
});
