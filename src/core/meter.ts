import type { Prices } from '../domain/model.ts';
import { usdNumber } from '../domain/money.ts';
import type { Usage } from '../domain/usage.ts';
import type { ChatUsage, CostDetails } from '../generated/types.ts';

/** What one call cost, in pico-dollars, exact; the parts add up to `total`. */
export interface Cost {
  readonly total: bigint;
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheWriteInput: bigint;
  readonly audioInput: bigint;
  readonly output: bigint;
  readonly imageOutput: bigint;
  readonly request: bigint;
  readonly webSearch: bigint;
  /** True when a price that this usage needs is not known: nothing is booked for it. */
  readonly unknownPrice: boolean;
}

const times = (count: number, price: bigint | undefined): bigint =>
  price === undefined || count === 0 ? 0n : BigInt(count) * price;

/**
 * The price of a usage by a mapping's price list. A part that has no price of its own (a cached read, reasoning, audio) is
 * charged as the whole that it belongs to.
 */
export function costOf(usage: Usage, prices: Prices): Cost {
  const { cachedTokens, cacheWrite5mTokens, cacheWrite1hTokens } = usage;
  const uncached = usage.promptTokens - cachedTokens - cacheWrite5mTokens - cacheWrite1hTokens;
  const audioIn = prices.input_audio === undefined ? 0 : Math.min(usage.promptAudioTokens, uncached);
  const audioOut = prices.output_audio === undefined ? 0 : usage.completionAudioTokens;
  const reasoning =
    prices.internal_reasoning === undefined ? 0 : Math.min(usage.reasoningTokens, usage.completionTokens - audioOut);
  const write5m = prices.input_cache_write ?? prices.prompt;

  const input = times(uncached - audioIn, prices.prompt);
  const cachedInput = times(cachedTokens, prices.input_cache_read ?? prices.prompt);
  const cacheWriteInput =
    times(cacheWrite5mTokens, write5m) + times(cacheWrite1hTokens, prices.input_cache_write_1h ?? write5m);
  const audioInput = times(audioIn, prices.input_audio);
  const output =
    times(usage.completionTokens - reasoning - audioOut, prices.completion) +
    times(reasoning, prices.internal_reasoning) +
    times(audioOut, prices.output_audio);
  const imageOutput = times(usage.images, prices.per_image);
  const request = prices.request ?? 0n;
  const webSearch = times(usage.webSearches, prices.web_search);
  return {
    total: input + cachedInput + cacheWriteInput + audioInput + output + imageOutput + request + webSearch,
    input,
    cachedInput,
    cacheWriteInput,
    audioInput,
    output,
    imageOutput,
    request,
    webSearch,
    unknownPrice:
      (usage.promptTokens > 0 && prices.prompt === undefined) ||
      (usage.completionTokens > 0 && prices.completion === undefined),
  };
}

function costDetails(cost: Cost): CostDetails {
  const prompt = cost.input + cost.cachedInput + cost.cacheWriteInput + cost.audioInput;
  const completions = cost.output + cost.imageOutput;
  return {
    upstream_inference_cost: usdNumber(prompt + completions),
    upstream_inference_prompt_cost: usdNumber(prompt),
    upstream_inference_completions_cost: usdNumber(completions),
    total_cost: usdNumber(cost.total),
    input_cost: usdNumber(cost.input),
    output_cost: usdNumber(cost.output),
    cached_input_cost: usdNumber(cost.cachedInput),
    cache_write_input_cost: usdNumber(cost.cacheWriteInput),
    request_cost: usdNumber(cost.request),
    web_search_cost: usdNumber(cost.webSearch),
    // The tokens of an image in the prompt are charged as any other of its tokens: they stand in `input_cost`.
    image_input_cost: 0,
    image_output_cost: usdNumber(cost.imageOutput),
    audio_input_cost: usdNumber(cost.audioInput),
    data_storage_cost: 0,
  };
}

function usageInfo(usage: Usage, cost: Cost): string | undefined {
  const notes = [];
  if (usage.estimated) notes.push('The provider reported no usage: token counts are estimated.');
  if (cost.unknownPrice) notes.push('A price of this model is unknown, so the cost is too.');
  return notes.length === 0 ? undefined : notes.join(' ');
}

/** The response's `usage`, with its cost in USD; the cost is absent when a price that it needs is unknown. */
export function chatUsage(usage: Usage, cost: Cost): ChatUsage {
  const cacheWrite = usage.cacheWrite5mTokens + usage.cacheWrite1hTokens;
  const info = usageInfo(usage, cost);
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    reasoning_tokens: usage.reasoningTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: cacheWrite,
      cache_creation_tokens: cacheWrite,
      cache_creation: {
        ephemeral_5m_input_tokens: usage.cacheWrite5mTokens,
        ephemeral_1h_input_tokens: usage.cacheWrite1hTokens,
      },
      audio_tokens: usage.promptAudioTokens,
      video_tokens: usage.promptVideoTokens,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      image_tokens: usage.completionImageTokens,
      audio_tokens: usage.completionAudioTokens,
    },
    ...(cost.unknownPrice ? {} : { cost: usdNumber(cost.total), cost_details: costDetails(cost) }),
    ...(info === undefined ? {} : { info }),
  };
}
