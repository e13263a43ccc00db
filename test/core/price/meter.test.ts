import { describe, expect, it } from 'vitest';
import { type Cost, chatUsage, costFields, costOf } from '../../../src/core/cost.ts';
import { parseUsd, parseUsdPerMillion } from '../../../src/domain/limits.ts';
import type { Prices } from '../../../src/domain/model.ts';
import { NO_USAGE, type Usage } from '../../../src/domain/usage.ts';

const perMillion = parseUsdPerMillion;

/** A price for everything that can have one. */
const FULL: Required<Prices> = {
  prompt: perMillion('3'),
  completion: perMillion('15'),
  input_cache_read: perMillion('0.3'),
  input_cache_write: perMillion('3.75'),
  input_cache_write_1h: perMillion('6'),
  internal_reasoning: perMillion('20'),
  input_audio: perMillion('40'),
  input_audio_cache_read: perMillion('2'),
  output_audio: perMillion('80'),
  input_image: perMillion('10'),
  output_image: perMillion('30'),
  image: parseUsd('0.001'),
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
  imageInput: 0n,
  output: 0n,
  imageOutput: 0n,
  request: 0n,
  webSearch: 0n,
  unknownPrice: false,
  unpricedSearch: false,
};

const usage = (some: Partial<Usage>): Usage => ({ ...NO_USAGE, ...some });

const cost = (some: Partial<Usage>, prices: Prices): Cost => costOf(usage(some), { prices });

describe('the cost of a call', () => {
  it('is the tokens at their prices', () => {
    expect(cost({ promptTokens: 1000, completionTokens: 100 }, PLAIN)).toEqual({
      ...NOTHING,
      input: parseUsd('0.003'),
      output: parseUsd('0.0015'),
      total: parseUsd('0.0045'),
    });
  });

  it('takes every part at its own price', () => {
    const everything: Partial<Usage> = {
      promptTokens: 10_000,
      cachedTokens: 4000,
      cachedAudioTokens: 100,
      cacheWrite5mTokens: 2000,
      cacheWrite1hTokens: 1000,
      promptAudioTokens: 600, // 100 of them cached
      promptImageTokens: 700,
      promptImages: 2,
      completionTokens: 2000,
      reasoningTokens: 300,
      completionAudioTokens: 200,
      completionImageTokens: 1000,
      images: 2,
      webSearches: 3,
    };

    expect(cost(everything, FULL)).toEqual({
      input: parseUsd('0.0054'), // 10000 - 4000 - 3000 - 500 - 700 = 1800 at 3
      cachedInput: parseUsd('0.00137'), // 3900 at 0.3, 100 at 2
      cacheWriteInput: parseUsd('0.0135'), // 2000 at 3.75, 1000 at 6
      audioInput: parseUsd('0.02'), // 500 at 40
      imageInput: parseUsd('0.009'), // 700 at 10, 2 images at 0.001
      output: parseUsd('0.0295'), // 500 at 15, 300 at 20, 200 at 80
      imageOutput: parseUsd('0.11'), // 1000 at 30, 2 images at 0.04
      request: parseUsd('0.005'),
      webSearch: parseUsd('0.03'),
      unknownPrice: false,
      unpricedSearch: false,
      total: parseUsd('0.22377'),
    });
  });

  it('charges a part that has no price of its own as the whole that it belongs to', () => {
    const parts: Partial<Usage> = {
      promptTokens: 1000,
      cachedTokens: 300,
      cachedAudioTokens: 30,
      cacheWrite5mTokens: 200,
      cacheWrite1hTokens: 100,
      promptAudioTokens: 50,
      promptImageTokens: 40,
      completionTokens: 100,
      reasoningTokens: 60,
      completionAudioTokens: 20,
      completionImageTokens: 10,
    };

    expect(cost(parts, PLAIN)).toEqual({
      ...NOTHING,
      input: parseUsd('0.0012'),
      cachedInput: parseUsd('0.0009'),
      cacheWriteInput: parseUsd('0.0009'),
      output: parseUsd('0.0015'),
      total: parseUsd('0.0045'),
    });
  });

  it('charges a write of an hour as one of five minutes where only that has a price', () => {
    const { input_cache_write_1h: _, ...prices } = FULL;

    expect(cost({ promptTokens: 1000, cacheWrite1hTokens: 1000 }, prices).cacheWriteInput).toBe(parseUsd('0.00375'));
  });

  it.each<[string, Prices, string]>([
    ['its own', FULL, '0.002'],
    ['that of other reads', { ...PLAIN, input_cache_read: perMillion('0.3'), input_audio: perMillion('40') }, '0.0003'],
    ['that of audio', { ...PLAIN, input_audio: perMillion('40') }, '0.04'],
    ['that of the prompt', PLAIN, '0.003'],
  ])('charges audio that was read from the cache at the first known price: %s', (_, prices, amount) => {
    const heard = { promptTokens: 1000, promptAudioTokens: 1000, cachedTokens: 1000, cachedAudioTokens: 1000 };

    expect(cost(heard, prices)).toMatchObject({ cachedInput: parseUsd(amount), audioInput: 0n });
  });

  it('is nothing, and known, for a free model', () => {
    expect(cost({ promptTokens: 5, completionTokens: 5 }, { prompt: 0n, completion: 0n })).toEqual({
      ...NOTHING,
      total: 0n,
    });
  });

  it.each<[string, Partial<Usage>, Prices, boolean]>([
    ['of the prompt', { promptTokens: 1 }, { completion: 1n }, true],
    ['of the completion', { completionTokens: 1 }, { prompt: 1n }, true],
    ['of a completion that there is not', { promptTokens: 1 }, { prompt: 1n }, false],
    ['of a prompt that there is not', { completionTokens: 1 }, { completion: 1n }, false],
    ['of nothing', {}, {}, false],
    [
      'of text where all tokens are of images',
      { completionTokens: 9, completionImageTokens: 9 },
      { output_image: 1n },
      false,
    ],
    ['of the text with images', { completionTokens: 10, completionImageTokens: 9 }, { output_image: 1n }, true],
    ['of the prompt where all of it was cached', { promptTokens: 9, cachedTokens: 9 }, { input_cache_read: 1n }, false],
    ['of images that no token tells of', { images: 1 }, { prompt: 1n, completion: 1n }, true],
    ['of images that are among the tokens', { images: 1, completionTokens: 9 }, { completion: 1n }, false],
  ])('is unknown only when a price that the usage needs is: %s', (_, some, prices, unknown) => {
    expect(cost(some, prices).unknownPrice).toBe(unknown);
  });

  it('has nothing for web searches of unknown price, and says so', () => {
    const searched: Partial<Usage> = { promptTokens: 1000, webSearches: 2 };

    expect([cost(searched, PLAIN), cost(searched, { ...PLAIN, web_search: 0n })]).toEqual([
      { ...NOTHING, input: parseUsd('0.003'), total: parseUsd('0.003'), unpricedSearch: true },
      { ...NOTHING, input: parseUsd('0.003'), total: parseUsd('0.003') },
    ]);
  });

  it('is exact where a floating point number is not', () => {
    const many: Partial<Usage> = { promptTokens: 9_007_199_254_740_991, completionTokens: 1 };

    expect(cost(many, { prompt: 3_000_001n, completion: 1n }).total).toBe(9_007_199_254_740_991n * 3_000_001n + 1n);
  });

  it.each([
    [200_000, '0.2', '0.0015'],
    [200_001, '0.400002', '0.00225'],
    [500_000, '1', '0.00225'],
    [500_001, '2.000004', '0.003'],
  ])(
    'takes all tokens at the prices of the highest tier that the prompt exceeds: %i',
    (promptTokens, input, output) => {
      const tiers = [
        { abovePromptTokens: 200_000, prices: { prompt: perMillion('2'), completion: perMillion('22.5') } },
        { abovePromptTokens: 500_000, prices: { prompt: perMillion('4'), completion: perMillion('30') } },
      ];
      const prices = { prompt: perMillion('1'), completion: perMillion('15') };

      expect(costOf(usage({ promptTokens, completionTokens: 100 }), { prices, tiers })).toMatchObject({
        input: parseUsd(input),
        output: parseUsd(output),
      });
    },
  );

  it('counts cached tokens to the prompt that reaches a tier', () => {
    const tiers = [{ abovePromptTokens: 100, prices: { prompt: 2n, input_cache_read: 1n } }];

    expect(costOf(usage({ promptTokens: 101, cachedTokens: 100 }), { prices: { prompt: 5n }, tiers }).total).toBe(102n);
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
      promptImageTokens: 100,
      promptImages: 1,
      promptVideoTokens: 7,
      completionTokens: 1000,
      reasoningTokens: 300,
      completionAudioTokens: 200,
      completionImageTokens: 9,
      images: 2,
      webSearches: 3,
    });

    expect(chatUsage(some, costOf(some, { prices: FULL }))).toEqual({
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
      cost: 0.188535,
      cost_details: {
        upstream_inference_cost: 0.153535,
        upstream_inference_prompt_cost: 0.0439,
        upstream_inference_completions_cost: 0.109635,
        total_cost: 0.188535,
        input_cost: 0.0072, // 10000 - 4000 - 3000 - 500 - 100 = 2400 at 3
        output_cost: 0.029365, // 491 at 15, 300 at 20, 200 at 80
        cached_input_cost: 0.0012,
        cache_write_input_cost: 0.0135,
        request_cost: 0.005,
        web_search_cost: 0.03,
        image_input_cost: 0.002, // 100 at 10, one image at 0.001
        image_output_cost: 0.08027, // 9 at 30, two images at 0.04
        audio_input_cost: 0.02,
        data_storage_cost: 0,
      },
    });
  });

  it.each<[string, Partial<Usage>, Prices, string]>([
    ['estimated', { estimated: true }, PLAIN, 'The provider reported no usage: token counts are estimated.'],
    [
      'roughly estimated',
      { estimated: true, rough: true },
      PLAIN,
      'The provider reported no usage: token counts are estimated. The estimate is rough: not all of the text was counted.',
    ],
    [
      'without the fee of a web search',
      { webSearches: 1 },
      PLAIN,
      'The price of a web search is unknown: the cost does not include it.',
    ],
    ['of unknown cost', { webSearches: 1 }, {}, 'A price of this model is unknown, so the cost is too.'],
  ])('says when it is %s', (_, some, prices, info) => {
    const counted = usage({ promptTokens: 1, ...some });

    expect(chatUsage(counted, costOf(counted, { prices })).info).toBe(info);
  });

  it('has no cost where a price that it needs is unknown', () => {
    const some = usage({ promptTokens: 1 });

    expect(Object.keys(costFields(some, costOf(some, { prices: {} })))).toEqual(['info']);
  });
});
