// What the answers of providers cost that speak OpenAI's wire format, each with its own way to report.
import { describe, expect, it } from 'vitest';
import { parseUsd, parseUsdPerMillion as perMillion } from '../../../src/domain/limits.ts';
import { openAiAdapterFor } from '../../../src/providers/openai/openai.ts';
import { chunksOf } from '../../providers/answers.ts';
import { chunk, completion } from '../../support/upstream.ts';
import { imageBill, type Lists, streamBill, wholeBill } from './bill.ts';

describe("the cost of xAI's answers", () => {
  const xai = openAiAdapterFor('xai');
  const GROK_4: Lists = {
    prices: { prompt: perMillion('3'), completion: perMillion('15'), input_cache_read: perMillion('0.75') },
  };
  const usage = {
    prompt_tokens: 32,
    completion_tokens: 9,
    total_tokens: 135,
    prompt_tokens_details: { text_tokens: 32, audio_tokens: 0, image_tokens: 0, cached_tokens: 6 },
    completion_tokens_details: { reasoning_tokens: 94, audio_tokens: 0, accepted_prediction_tokens: 0 },
    num_sources_used: 0,
  };
  const bill = {
    usage: { promptTokens: 32, cachedTokens: 6, completionTokens: 103, reasoningTokens: 94 },
    parts: { input: 26n * 3_000_000n, cachedInput: 6n * 750_000n, output: 103n * 15_000_000n }, // 9 + 94
    total: '0.0016275', // 0.000078 + 0.0000045 + 0.001545
  };

  it('adds reasoning to the answer, where it is counted apart', () => {
    expect(wholeBill(xai, completion('Hi', { usage }), GROK_4)).toEqual(bill);
  });

  it('is the same in a stream that reports with every chunk', async () => {
    const events = chunksOf(
      { ...chunk({ content: 'Hi' }), usage: { ...usage, completion_tokens: 1, total_tokens: 127 } },
      { ...chunk({}, 'stop'), usage },
    );

    expect(await streamBill(xai, GROK_4, events)).toEqual(bill);
  });

  it('takes a price per picture', () => {
    const lists: Lists = { prices: { per_image: parseUsd('0.07') } };

    expect(imageBill(xai, { data: [{ url: 'https://example.com/door.jpg' }] }, lists)).toEqual({
      usage: { images: 1 },
      parts: { imageOutput: 70_000_000_000n },
      total: '0.07',
    });
  });
});

describe("the cost of DeepSeek's answers", () => {
  it('takes hits of its cache at their price, and reasoning as the output tokens that it is among', () => {
    const prices = {
      prompt: perMillion('0.28'),
      completion: perMillion('0.42'),
      input_cache_read: perMillion('0.028'),
    };
    const usage = {
      prompt_tokens: 1100,
      completion_tokens: 500,
      total_tokens: 1600,
      prompt_cache_hit_tokens: 1024,
      prompt_cache_miss_tokens: 76,
      completion_tokens_details: { reasoning_tokens: 300 },
    };

    expect(wholeBill(openAiAdapterFor('deepseek'), completion('Hi', { usage }), { prices })).toEqual({
      usage: { promptTokens: 1100, cachedTokens: 1024, completionTokens: 500, reasoningTokens: 300 },
      parts: { input: 76n * 280_000n, cachedInput: 1024n * 28_000n, output: 500n * 420_000n },
      total: '0.000259952', // 0.00002128 + 0.000028672 + 0.00021
    });
  });
});

describe("the cost of a stream that does not report at OpenAI's place", () => {
  const prices = { prompt: perMillion('0.6'), completion: perMillion('2.5'), input_cache_read: perMillion('0.15') };

  it("takes Groq's report once, which stands twice in the last chunk", async () => {
    const usage = { queue_time: 0.1, prompt_tokens: 24, prompt_time: 0.001, completion_tokens: 377, total_tokens: 401 };
    const events = chunksOf(chunk({ content: 'Hi' }), { ...chunk({}, 'stop'), usage, x_groq: { id: 'req_1', usage } });
    const older = chunksOf(chunk({ content: 'Hi' }), { ...chunk({}, 'stop'), x_groq: { id: 'req_1', usage } });
    const bill = {
      usage: { promptTokens: 24, completionTokens: 377 },
      parts: { input: 24n * 600_000n, output: 377n * 2_500_000n },
      total: '0.0009569', // 0.0000144 + 0.0009425
    };

    const groq = openAiAdapterFor('groq');
    expect([await streamBill(groq, { prices }, events), await streamBill(groq, { prices }, older)]).toEqual([
      bill,
      bill,
    ]);
  });

  it("takes Moonshot's report from the last choice, cached tokens outside the details", async () => {
    const usage = { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32, cached_tokens: 12 };
    const last = { ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] };

    expect(
      await streamBill(openAiAdapterFor('moonshotai'), { prices }, chunksOf(chunk({ content: 'Hi' }), last)),
    ).toEqual({
      usage: { promptTokens: 19, cachedTokens: 12, completionTokens: 13 },
      parts: { input: 7n * 600_000n, cachedInput: 12n * 150_000n, output: 13n * 2_500_000n },
      total: '0.0000385', // 0.0000042 + 0.0000018 + 0.0000325
    });
  });
});

describe("the cost of a reseller's answers", () => {
  const openrouter = openAiAdapterFor('openrouter');

  it('takes reads and writes of the cache once each, and our prices, not the cost that it tells', () => {
    const prices = {
      prompt: perMillion('3'),
      completion: perMillion('15'),
      input_cache_read: perMillion('0.3'),
      input_cache_write: perMillion('3.75'),
    };
    const usage = {
      prompt_tokens: 10_339,
      completion_tokens: 60,
      total_tokens: 10_399,
      cost: 123,
      prompt_tokens_details: { cached_tokens: 10_000, cache_write_tokens: 318, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 40, image_tokens: 0 },
      cost_details: { upstream_inference_cost: 123 },
    };

    expect(wholeBill(openrouter, completion('Hi', { usage }), { prices })).toEqual({
      usage: {
        promptTokens: 10_339,
        cachedTokens: 10_000,
        cacheWrite5mTokens: 318,
        completionTokens: 60,
        reasoningTokens: 40,
      },
      parts: {
        input: 21n * 3_000_000n, // 10339 - 10000 - 318
        cachedInput: 10_000n * 300_000n,
        cacheWriteInput: 318n * 3_750_000n,
        output: 60n * 15_000_000n,
      },
      total: '0.0051555', // 0.000063 + 0.003 + 0.0011925 + 0.0009
    });
  });

  it('adds the fee of a request, and takes reasoning at its own price where it has one', () => {
    const prices = {
      prompt: perMillion('2'),
      completion: perMillion('8'),
      internal_reasoning: perMillion('3'),
      request: parseUsd('0.005'),
      web_search: parseUsd('0.005'),
    };
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 900,
      total_tokens: 920,
      completion_tokens_details: { reasoning_tokens: 800 },
      server_tool_use: { web_search_requests: 2 },
    };

    expect(wholeBill(openrouter, completion('Hi', { usage }), { prices })).toEqual({
      usage: { promptTokens: 20, completionTokens: 900, reasoningTokens: 800, webSearches: 2 },
      parts: {
        input: 20n * 2_000_000n,
        output: 100n * 8_000_000n + 800n * 3_000_000n,
        request: 5_000_000_000n,
        webSearch: 2n * 5_000_000_000n,
      },
      total: '0.01824', // 0.00004 + 0.0008 + 0.0024 + 0.005 + 0.01
    });
  });
});

describe('the cost of answers with the two main numbers only', () => {
  it.each([
    ['mistral', '2', '6', { input: 100n * 2_000_000n, output: 50n * 6_000_000n }, '0.0005'],
    ['together', '0.88', '0.88', { input: 100n * 880_000n, output: 50n * 880_000n }, '0.000132'],
    ['fireworks', '0.9', '0.9', { input: 100n * 900_000n, output: 50n * 900_000n }, '0.000135'],
    ['cerebras', '0.35', '0.75', { input: 100n * 350_000n, output: 50n * 750_000n }, '0.0000725'],
  ])('is their product with the prices: %s', (provider, prompt, output, parts, total) => {
    const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };
    const prices = { prompt: perMillion(prompt), completion: perMillion(output) };

    expect(wholeBill(openAiAdapterFor(provider), completion('Hi', { usage }), { prices })).toEqual({
      usage: { promptTokens: 100, completionTokens: 50 },
      parts,
      total,
    });
  });
});
