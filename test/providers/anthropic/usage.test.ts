import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { anthropicUsage, reportUsage } from '../../../src/providers/anthropic/answer.ts';

/** The usage of an answer that reports these, one after the other. */
const usageOf = (...reports: unknown[]) => anthropicUsage(reports.reduce(reportUsage, {}));

describe('anthropicUsage', () => {
  it('counts cache reads and writes into the prompt, and takes writes for five minutes unless told otherwise', () => {
    const reported = {
      input_tokens: 10,
      output_tokens: 3,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 200,
    };
    expect(usageOf(reported)).toEqual({
      ...NO_USAGE,
      promptTokens: 1210,
      completionTokens: 3,
      cachedTokens: 1000,
      cacheWrite5mTokens: 200,
    });
    expect(
      usageOf({ ...reported, cache_creation: { ephemeral_1h_input_tokens: 150, ephemeral_5m_input_tokens: 50 } }),
    ).toEqual({
      ...NO_USAGE,
      promptTokens: 1210,
      completionTokens: 3,
      cachedTokens: 1000,
      cacheWrite5mTokens: 50,
      cacheWrite1hTokens: 150,
    });
  });

  it('takes each field’s last value: no maximum and no sum, though its meaning changed between the two', () => {
    const start = { input_tokens: 1000, output_tokens: 0, cache_read_input_tokens: 0 };
    const end = { input_tokens: 200, output_tokens: 40, cache_read_input_tokens: 800 };
    expect(usageOf(start, end)).toEqual({ ...NO_USAGE, promptTokens: 1000, completionTokens: 40, cachedTokens: 800 });
    expect(usageOf(start, { output_tokens: 40 })).toEqual({ ...NO_USAGE, promptTokens: 1000, completionTokens: 40 });
    expect(usageOf(start, { input_tokens: null, output_tokens: 7 }, { output_tokens: 5 })).toEqual({
      ...NO_USAGE,
      promptTokens: 1000,
      completionTokens: 5,
    });
  });

  it('never counts more writes of an hour than writes, when the last number of those is smaller', () => {
    const start = {
      input_tokens: 5,
      output_tokens: 1,
      cache_creation_input_tokens: 100,
      cache_creation: { ephemeral_1h_input_tokens: 100, ephemeral_5m_input_tokens: 0 },
    };
    expect(usageOf(start, { cache_creation_input_tokens: 0 })).toEqual({
      ...NO_USAGE,
      promptTokens: 5,
      completionTokens: 1,
    });
  });

  it('takes the writes from their parts when their sum is missing', () => {
    const cacheCreation = { ephemeral_1h_input_tokens: 30, ephemeral_5m_input_tokens: 20 };
    expect(usageOf({ input_tokens: 5, output_tokens: 1, cache_creation: cacheCreation })).toEqual({
      ...NO_USAGE,
      promptTokens: 55,
      completionTokens: 1,
      cacheWrite5mTokens: 20,
      cacheWrite1hTokens: 30,
    });
  });

  it('adds what summing the conversation up took: the main numbers leave it out, the bill does not', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 180_000, output_tokens: 3500, cache_read_input_tokens: 10 },
      { type: 'message', input_tokens: 23_000, output_tokens: 1000 },
    ];
    expect(usageOf({ input_tokens: 23_000, output_tokens: 1000, iterations })).toEqual({
      ...NO_USAGE,
      promptTokens: 203_010,
      completionTokens: 4500,
      cachedTokens: 10,
    });
  });

  it.each([
    undefined,
    null,
    'x',
    {},
    { input_tokens: 5 },
    { output_tokens: 5 },
    { input_tokens: '5', output_tokens: -1 },
  ])('reads %j as none', (reported) => {
    expect(usageOf(reported)).toBeUndefined();
  });
});
