import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chatUsage, costOf } from '../../src/core/meter.ts';
import type { Prices } from '../../src/domain/model.ts';
import { parseUsd, parseUsdPerMillion } from '../../src/domain/money.ts';
import { NO_USAGE, normaliseUsage, type Usage } from '../../src/domain/usage.ts';

const perMillion = parseUsdPerMillion;

/** What a well-known model charges, cache and audio included. */
const FULL: Required<Omit<Prices, 'image'>> = {
  prompt: perMillion('3'),
  completion: perMillion('15'),
  input_cache_read: perMillion('0.3'),
  input_cache_write: perMillion('3.75'),
  input_cache_write_1h: perMillion('6'),
  internal_reasoning: perMillion('20'),
  input_audio: perMillion('40'),
  output_audio: perMillion('80'),
  request: parseUsd('0.005'),
  web_search: parseUsd('0.01'),
  per_image: parseUsd('0.04'),
};

const PLAIN: Prices = { prompt: perMillion('3'), completion: perMillion('15') };

const NOTHING = {
  input: 0n,
  cachedInput: 0n,
  cacheWriteInput: 0n,
  audioInput: 0n,
  output: 0n,
  imageOutput: 0n,
  request: 0n,
  webSearch: 0n,
  unknownPrice: false,
};

const usage = (some: Partial<Usage>): Usage => ({ ...NO_USAGE, ...some });

describe('the cost of a call', () => {
  it('is the tokens at their prices', () => {
    expect(costOf(usage({ promptTokens: 1000, completionTokens: 100 }), PLAIN)).toEqual({
      ...NOTHING,
      input: parseUsd('0.003'),
      output: parseUsd('0.0015'),
      total: parseUsd('0.0045'),
    });
  });

  it('takes every part at its own price', () => {
    const everything = usage({
      promptTokens: 10_000,
      cachedTokens: 4000,
      cacheWrite5mTokens: 2000,
      cacheWrite1hTokens: 1000,
      promptAudioTokens: 500,
      completionTokens: 1000,
      reasoningTokens: 300,
      completionAudioTokens: 200,
      images: 2,
      webSearches: 3,
    });

    expect(costOf(everything, FULL)).toEqual({
      input: parseUsd('0.0075'), // 2500 at 3
      cachedInput: parseUsd('0.0012'), // 4000 at 0.3
      cacheWriteInput: parseUsd('0.0135'), // 2000 at 3.75, 1000 at 6
      audioInput: parseUsd('0.02'), // 500 at 40
      output: parseUsd('0.0295'), // 500 at 15, 300 at 20, 200 at 80
      imageOutput: parseUsd('0.08'),
      request: parseUsd('0.005'),
      webSearch: parseUsd('0.03'),
      unknownPrice: false,
      total: parseUsd('0.1867'),
    });
  });

  it('charges a part that has no price of its own as the whole that it belongs to', () => {
    const parts = usage({
      promptTokens: 1000,
      cachedTokens: 300,
      cacheWrite5mTokens: 200,
      cacheWrite1hTokens: 100,
      promptAudioTokens: 50,
      completionTokens: 100,
      reasoningTokens: 60,
      completionAudioTokens: 20,
    });

    const { total, cachedInput, cacheWriteInput, audioInput } = costOf(parts, PLAIN);

    expect([cachedInput, cacheWriteInput, audioInput]).toEqual([parseUsd('0.0009'), parseUsd('0.0009'), 0n]);
    expect(total).toBe(parseUsd('0.0045'));
  });

  it('charges a write of an hour as one of five minutes where only that has a price', () => {
    const { input_cache_write_1h: _, ...prices } = FULL;

    expect(costOf(usage({ promptTokens: 1000, cacheWrite1hTokens: 1000 }), prices).cacheWriteInput).toBe(
      parseUsd('0.00375'),
    );
  });

  it('is nothing, and known, for a free model', () => {
    expect(costOf(usage({ promptTokens: 5, completionTokens: 5 }), { prompt: 0n, completion: 0n })).toEqual({
      ...NOTHING,
      total: 0n,
    });
  });

  it('is unknown when a price that the usage needs is', () => {
    const unknown = (some: Partial<Usage>, prices: Prices) => costOf(usage(some), prices).unknownPrice;

    expect([
      unknown({ promptTokens: 1 }, { completion: 1n }),
      unknown({ completionTokens: 1 }, { prompt: 1n }),
      unknown({ promptTokens: 1 }, { prompt: 1n }),
      unknown({ completionTokens: 1 }, { completion: 1n }),
      unknown({}, {}),
    ]).toEqual([true, true, false, false, false]);
  });

  it('is exact where a floating point number is not', () => {
    const many = usage({ promptTokens: 9_007_199_254_740_991, completionTokens: 1 });

    expect(costOf(many, { prompt: 3_000_001n, completion: 1n }).total).toBe(9_007_199_254_740_991n * 3_000_001n + 1n);
  });

  it('is never negative and always the sum of its parts, whatever an upstream reports', () => {
    const count = fc.nat(1_000_000);
    const reported = fc.record(
      {
        promptTokens: count,
        completionTokens: count,
        reasoningTokens: count,
        cachedTokens: count,
        cacheWrite5mTokens: count,
        cacheWrite1hTokens: count,
        promptAudioTokens: count,
        completionAudioTokens: count,
        images: fc.nat(10),
        webSearches: fc.nat(10),
      },
      { requiredKeys: [] },
    );
    const names = [
      'prompt',
      'completion',
      'input_cache_read',
      'input_cache_write',
      'input_cache_write_1h',
      'internal_reasoning',
      'input_audio',
      'output_audio',
      'request',
      'web_search',
      'per_image',
    ] as const;
    const prices = fc.dictionary(fc.constantFrom(...names), fc.bigInt(0n, 10n ** 12n));
    fc.assert(
      fc.property(reported, prices, (some, list) => {
        const { total, unknownPrice, ...parts } = costOf(normaliseUsage(some), list);
        const amounts = Object.values(parts);
        expect(amounts.every((amount) => amount >= 0n)).toBe(true);
        expect(amounts.reduce((sum, amount) => sum + amount, 0n)).toBe(total);
      }),
    );
  });
});

describe("the answer's usage", () => {
  it('tells tokens and costs in the fields of the specification', () => {
    const some = usage({
      promptTokens: 10_000,
      cachedTokens: 4000,
      cacheWrite5mTokens: 2000,
      cacheWrite1hTokens: 1000,
      promptAudioTokens: 500,
      promptVideoTokens: 7,
      completionTokens: 1000,
      reasoningTokens: 300,
      completionAudioTokens: 200,
      completionImageTokens: 9,
      images: 2,
      webSearches: 3,
    });

    expect(chatUsage(some, costOf(some, FULL))).toEqual({
      prompt_tokens: 10_000,
      completion_tokens: 1000,
      total_tokens: 11_000,
      reasoning_tokens: 300,
      prompt_tokens_details: {
        cached_tokens: 4000,
        cache_write_tokens: 3000,
        cache_creation_tokens: 3000,
        cache_creation: { ephemeral_5m_input_tokens: 2000, ephemeral_1h_input_tokens: 1000 },
        audio_tokens: 500,
        video_tokens: 7,
      },
      completion_tokens_details: { reasoning_tokens: 300, image_tokens: 9, audio_tokens: 200 },
      cost: 0.1867,
      cost_details: {
        upstream_inference_cost: 0.1517,
        upstream_inference_prompt_cost: 0.0422,
        upstream_inference_completions_cost: 0.1095,
        total_cost: 0.1867,
        input_cost: 0.0075,
        output_cost: 0.0295,
        cached_input_cost: 0.0012,
        cache_write_input_cost: 0.0135,
        request_cost: 0.005,
        web_search_cost: 0.03,
        image_input_cost: 0,
        image_output_cost: 0.08,
        audio_input_cost: 0.02,
        data_storage_cost: 0,
      },
    });
  });

  it('says when it is estimated, and when its cost is unknown', () => {
    const some = usage({ promptTokens: 1, estimated: true });

    const { info, cost, cost_details: details } = chatUsage(some, costOf(some, {}));

    expect([info, cost, details]).toEqual([
      'The provider reported no usage: token counts are estimated. A price of this model is unknown, so the cost is too.',
      undefined,
      undefined,
    ]);
  });
});
