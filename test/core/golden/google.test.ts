// What Gemini's answers cost. There, thoughts are not part of the answer's tokens and results of tools not part of the prompt's; cached tokens are.
import { describe, expect, it } from 'vitest';
import { parseUsd, parseUsdPerMillion as perMillion } from '../../../src/domain/limits.ts';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { imageBill, type Lists, streamBill, wholeBill } from './bill.ts';

/** Gemini 2.5 Pro. */
const PRO: Lists = {
  prices: { prompt: perMillion('1.25'), completion: perMillion('10'), input_cache_read: perMillion('0.125') },
  tiers: [
    {
      abovePromptTokens: 200_000,
      prices: { prompt: perMillion('2.5'), completion: perMillion('15'), input_cache_read: perMillion('0.25') },
    },
  ],
};

/** Gemini 2.5 Flash. */
const FLASH: Lists = {
  prices: {
    prompt: perMillion('0.3'),
    completion: perMillion('2.5'),
    input_cache_read: perMillion('0.03'),
    input_audio: perMillion('1'),
    input_audio_cache_read: perMillion('0.1'),
    web_search: parseUsd('0.035'),
  },
};

/** Gemini 2.5 Flash Image. */
const FLASH_IMAGE: Lists = {
  prices: { prompt: perMillion('0.3'), completion: perMillion('2.5'), output_image: perMillion('30') },
};

const PICTURE = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };

const answer = (usageMetadata: object, more: object = {}, parts: readonly object[] = [{ text: 'Hello' }]): object => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP', ...more }],
  usageMetadata,
  modelVersion: 'gemini-2.5-flash',
  responseId: 'r1',
});

const THOUGHT = {
  promptTokenCount: 1200,
  cachedContentTokenCount: 1000,
  candidatesTokenCount: 300,
  thoughtsTokenCount: 700,
  totalTokenCount: 2200,
};

const THOUGHT_BILL = {
  usage: { promptTokens: 1200, cachedTokens: 1000, completionTokens: 1000, reasoningTokens: 700 },
  parts: { input: 200n * 1_250_000n, cachedInput: 1000n * 125_000n, output: 1000n * 10_000_000n },
  total: '0.010375', // 0.00025 + 0.000125 + 0.01
};

describe("the cost of Gemini's answers", () => {
  it('takes cached tokens out of the prompt and adds thoughts to the answer', () => {
    expect(wholeBill(googleAdapter, answer(THOUGHT), PRO)).toEqual(THOUGHT_BILL);
  });

  it('is the same in a stream, where every chunk reports: the last one counts, nothing is summed', async () => {
    const chunk = (usage: object, more: object): string => `data: ${JSON.stringify(answer(usage, more))}\n\n`;
    const events = [
      chunk({ promptTokenCount: 1200, candidatesTokenCount: 1 }, { finishReason: undefined }),
      chunk({ ...THOUGHT, candidatesTokenCount: 100, thoughtsTokenCount: 700 }, { finishReason: undefined }),
      chunk(THOUGHT, {}),
    ].join('');

    expect(await streamBill(googleAdapter, PRO, events)).toEqual(THOUGHT_BILL);
  });

  it.each([
    [
      200_000,
      { input: 100_000n * 1_250_000n, cachedInput: 100_000n * 125_000n, output: 1500n * 10_000_000n },
      '0.1525',
    ],
    [
      200_001,
      { input: 100_001n * 2_500_000n, cachedInput: 100_000n * 250_000n, output: 1500n * 15_000_000n },
      '0.2975025',
    ],
  ])('takes all tokens at the higher prices when the prompt exceeds 200,000: %i', (promptTokenCount, parts, total) => {
    const usage = {
      promptTokenCount,
      cachedContentTokenCount: 100_000,
      candidatesTokenCount: 1000,
      thoughtsTokenCount: 500,
    };

    expect(wholeBill(googleAdapter, answer(usage), PRO)).toEqual({
      usage: {
        promptTokens: promptTokenCount,
        cachedTokens: 100_000,
        completionTokens: 1500,
        reasoningTokens: 500,
      },
      parts,
      total,
    });
  });

  it('takes sound at its own prices, cached and not, each token once', () => {
    const usage = {
      promptTokenCount: 1060,
      cachedContentTokenCount: 370,
      candidatesTokenCount: 10,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 100 },
        { modality: 'AUDIO', tokenCount: 960 },
      ],
      cacheTokensDetails: [
        { modality: 'AUDIO', tokenCount: 320 },
        { modality: 'TEXT', tokenCount: 50 },
      ],
    };

    expect(wholeBill(googleAdapter, answer(usage), FLASH)).toEqual({
      usage: {
        promptTokens: 1060,
        promptAudioTokens: 960,
        cachedTokens: 370,
        cachedAudioTokens: 320,
        completionTokens: 10,
      },
      parts: {
        input: 50n * 300_000n, // 1060 - 370 - 640
        audioInput: 640n * 1_000_000n, // 960 - 320
        cachedInput: 50n * 30_000n + 320n * 100_000n,
        output: 10n * 2_500_000n,
      },
      total: '0.0007135', // 0.000015 + 0.00064 + 0.0000015 + 0.000032 + 0.000025
    });
  });

  it('takes results of its tools as input, and a search once for an answer before Gemini 3', () => {
    const usage = { promptTokenCount: 12, toolUsePromptTokenCount: 88, candidatesTokenCount: 20 };
    const grounded = { groundingMetadata: { webSearchQueries: ['red doors', 'blue doors'] } };

    expect(wholeBill(googleAdapter, answer(usage, grounded), FLASH)).toEqual({
      usage: { promptTokens: 100, completionTokens: 20, webSearches: 1 },
      parts: { input: 100n * 300_000n, output: 20n * 2_500_000n, webSearch: 35_000_000_000n },
      total: '0.03508', // 0.00003 + 0.00005 + 0.035
    });
  });

  it("takes a picture's tokens at the price of pictures and its words at that of words", () => {
    const usage = {
      promptTokenCount: 300,
      candidatesTokenCount: 1300,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 42 },
        { modality: 'IMAGE', tokenCount: 258 },
      ],
      candidatesTokensDetails: [
        { modality: 'TEXT', tokenCount: 10 },
        { modality: 'IMAGE', tokenCount: 1290 },
      ],
    };

    expect(wholeBill(googleAdapter, answer(usage, {}, [{ text: 'Here' }, PICTURE]), FLASH_IMAGE)).toEqual({
      usage: {
        promptTokens: 300,
        promptImageTokens: 258,
        completionTokens: 1300,
        completionImageTokens: 1290,
        images: 1,
      },
      parts: {
        input: 300n * 300_000n, // an image in the prompt has no price of its own here
        output: 10n * 2_500_000n,
        imageOutput: 1290n * 30_000_000n,
      },
      total: '0.038815', // 0.00009 + 0.000025 + 0.0387
    });
  });

  it('is the same for pictures that are asked for as such', () => {
    const usage = {
      promptTokenCount: 8,
      candidatesTokenCount: 1290,
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1290 }],
    };

    expect(imageBill(googleAdapter, answer(usage, {}, [PICTURE]), FLASH_IMAGE)).toEqual({
      usage: { promptTokens: 8, completionTokens: 1290, completionImageTokens: 1290, images: 1 },
      parts: { input: 8n * 300_000n, imageOutput: 1290n * 30_000_000n },
      total: '0.0387024',
    });
  });
});
