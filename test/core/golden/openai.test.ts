// What OpenAI's answers cost. Cached and reasoning tokens are among the main numbers there.
import { describe, expect, it } from 'vitest';
import { parseUsd, parseUsdPerMillion as perMillion } from '../../../src/domain/limits.ts';
import type { ChatRequest } from '../../../src/generated/types.ts';
import { openAiAdapterFor } from '../../../src/providers/openai/openai.ts';
import { chunksOf } from '../../providers/answers.ts';
import { chunk, completion } from '../../support/upstream.ts';
import { imageBill, type Lists, streamBill, wholeBill } from './bill.ts';

const openai = openAiAdapterFor('openai');

const O4_MINI: Lists = {
  prices: { prompt: perMillion('1.1'), completion: perMillion('4.4'), input_cache_read: perMillion('0.275') },
};

const REASONED = {
  prompt_tokens: 2006,
  completion_tokens: 1300,
  total_tokens: 3306,
  prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 1024,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};

const REASONED_BILL = {
  usage: { promptTokens: 2006, cachedTokens: 1920, completionTokens: 1300, reasoningTokens: 1024 },
  parts: {
    input: 86n * 1_100_000n, // 2006 - 1920
    cachedInput: 1920n * 275_000n,
    output: 1300n * 4_400_000n, // reasoning among them
  },
  total: '0.0063426', // 0.0000946 + 0.000528 + 0.00572
};

describe("the cost of OpenAI's answers", () => {
  it('takes cached tokens once, at their price, and reasoning as the output tokens that it is among', () => {
    expect(wholeBill(openai, completion('Hi', { usage: REASONED }), O4_MINI)).toEqual(REASONED_BILL);
  });

  it('is the same in a stream, where the last chunk reports', async () => {
    const events = chunksOf(
      { ...chunk({ content: 'Hi' }), usage: null },
      { ...chunk({}, 'stop'), usage: null },
      { ...chunk({}), choices: [], usage: REASONED },
    );

    expect(await streamBill(openai, O4_MINI, events)).toEqual(REASONED_BILL);
  });

  it('is that of the last report where a server reports in several chunks, with choices and without', async () => {
    const early = { ...REASONED, completion_tokens: 7, total_tokens: 2013, completion_tokens_details: {} };
    const events = chunksOf(
      { ...chunk({ content: 'Hi' }), usage: early },
      { ...chunk({}, 'stop'), usage: REASONED },
      { ...chunk({}), choices: [], usage: REASONED },
    );

    expect(await streamBill(openai, O4_MINI, events)).toEqual(REASONED_BILL);
  });

  it('takes all tokens at the higher prices when the prompt exceeds 272,000', () => {
    const prices = { prompt: perMillion('2.5'), completion: perMillion('15'), input_cache_read: perMillion('0.25') };
    const long = { prompt: perMillion('5'), completion: perMillion('22.5'), input_cache_read: perMillion('0.5') };
    const usage = {
      prompt_tokens: 300_000,
      completion_tokens: 1000,
      total_tokens: 301_000,
      prompt_tokens_details: { cached_tokens: 100_000 },
    };
    const lists: Lists = { prices, tiers: [{ abovePromptTokens: 272_000, prices: long }] };

    expect(wholeBill(openai, completion('Hi', { usage }), lists)).toEqual({
      usage: { promptTokens: 300_000, cachedTokens: 100_000, completionTokens: 1000 },
      parts: { input: 200_000n * 5_000_000n, cachedInput: 100_000n * 500_000n, output: 1000n * 22_500_000n },
      total: '1.0725', // 1 + 0.05 + 0.0225
    });
  });

  it('takes spoken tokens at their own prices, both ways', () => {
    const prices = {
      prompt: perMillion('2.5'),
      completion: perMillion('10'),
      input_audio: perMillion('32'),
      output_audio: perMillion('64'),
    };
    const usage = {
      prompt_tokens: 120,
      completion_tokens: 300,
      total_tokens: 420,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 100, text_tokens: 20, image_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 250, text_tokens: 50 },
    };

    expect(wholeBill(openai, completion('Hi', { usage }), { prices })).toEqual({
      usage: { promptTokens: 120, promptAudioTokens: 100, completionTokens: 300, completionAudioTokens: 250 },
      parts: {
        input: 20n * 2_500_000n,
        audioInput: 100n * 32_000_000n,
        output: 50n * 10_000_000n + 250n * 64_000_000n,
      },
      total: '0.01975', // 0.00005 + 0.0032 + 0.0005 + 0.016
    });
  });

  it('adds a fee for each image of the request where the mapping has one', () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } } as const;
    const asked: ChatRequest = { model: 'm', messages: [{ role: 'user', content: [image, image] }] };
    const prices = { prompt: perMillion('1.1'), completion: perMillion('4.4'), image: parseUsd('0.0008') };
    const usage = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };

    expect(wholeBill(openai, completion('Hi', { usage }), { prices }, asked)).toEqual({
      usage: { promptTokens: 1000, promptImages: 2, completionTokens: 10 },
      parts: { input: 1000n * 1_100_000n, imageInput: 2n * 800_000_000n, output: 10n * 4_400_000n },
      total: '0.002744', // 0.0011 + 0.0016 + 0.000044
    });
  });
});

describe("the cost of OpenAI's images", () => {
  const GPT_IMAGE: Lists = {
    prices: {
      prompt: perMillion('5'),
      input_cache_read: perMillion('1.25'),
      input_image: perMillion('10'),
      output_image: perMillion('40'),
    },
  };
  const picture = { b64_json: 'AAAA' };

  it('takes text, images given and images made at the price of each', () => {
    const usage = {
      input_tokens: 50,
      input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      output_tokens: 1056,
      total_tokens: 1106,
    };

    expect(imageBill(openai, { created: 1, data: [picture], usage }, GPT_IMAGE)).toEqual({
      usage: {
        promptTokens: 50,
        promptImageTokens: 40,
        completionTokens: 1056,
        completionImageTokens: 1056,
        images: 1,
      },
      parts: { input: 10n * 5_000_000n, imageInput: 40n * 10_000_000n, imageOutput: 1056n * 40_000_000n },
      total: '0.04269', // 0.00005 + 0.0004 + 0.04224
    });
  });

  it('takes what is said with the picture at the price of text', () => {
    const prices = { ...GPT_IMAGE.prices, completion: perMillion('10') };
    const usage = {
      input_tokens: 10,
      input_tokens_details: { text_tokens: 10, image_tokens: 0 },
      output_tokens: 1100,
      output_tokens_details: { text_tokens: 44, image_tokens: 1056 },
      total_tokens: 1110,
    };

    expect(imageBill(openai, { created: 1, data: [picture], usage }, { prices })).toEqual({
      usage: { promptTokens: 10, completionTokens: 1100, completionImageTokens: 1056, images: 1 },
      parts: { input: 10n * 5_000_000n, output: 44n * 10_000_000n, imageOutput: 1056n * 40_000_000n },
      total: '0.04273', // 0.00005 + 0.00044 + 0.04224
    });
  });

  it('takes a price per picture where no tokens are reported', () => {
    const url = { url: 'https://example.com/door.png', revised_prompt: 'A red door' };
    const lists: Lists = { prices: { per_image: parseUsd('0.04') } };

    expect(imageBill(openai, { created: 1, data: [url, url] }, lists)).toEqual({
      usage: { images: 2 },
      parts: { imageOutput: 2n * 40_000_000_000n },
      total: '0.08',
    });
  });

  it('is not known where tokens have the only price and none are reported', () => {
    expect(imageBill(openai, { created: 1, data: [picture] }, GPT_IMAGE).parts).toEqual({ unknownPrice: true });
  });
});
