import { usdNumber } from '../domain/limits.ts';
import type { Mapping, Prices } from '../domain/model.ts';
import type { Usage } from '../domain/usage.ts';
import type { ChatUsage, CostDetails } from '../generated/types.ts';
import type { OutputLimit } from './worst-case.ts';

/** The parts of a cost. */
const PARTS = [
  /** Tokens of the prompt that nothing below charges. */
  'input',
  'cachedInput',
  'cacheWriteInput',
  'audioInput',
  'imageInput',
  /** Tokens of the completion, but for those of images. */
  'output',
  'imageOutput',
  'request',
  'webSearch',
] as const;

/** The amounts of a cost. */
export const AMOUNTS = ['total', ...PARTS] as const;

type Part = (typeof PARTS)[number];

/** The cost of one call, in pico-dollars, exact; the parts add up to `total`. */
export interface Cost extends Readonly<Record<(typeof AMOUNTS)[number], bigint>> {
  /** True when a price that this usage needs is not known: nothing is booked for it. */
  readonly unknownPrice: boolean;
  /** True when the web was searched and the price of that is not known: nothing is booked for it, the rest is. */
  readonly unpricedSearch: boolean;
  /** Attempts that failed are part of it. */
  readonly hasFailedAttempts?: true;
}

/** Usage and cost of an attempt that did not serve the call: it is still paid for. */
export interface Charge {
  readonly usage: Usage;
  readonly cost: Cost;
}

type PriceLists = Pick<Mapping, 'prices' | 'tiers'>;

/** The price list for a prompt of this length: of the highest tier that it exceeds. All of the call's tokens go by it. */
function pricesFor({ prices, tiers = [] }: PriceLists, promptTokens: number): Prices {
  return tiers.findLast(({ abovePromptTokens }) => abovePromptTokens < promptTokens)?.prices ?? prices;
}

/** Adds up what a usage is charged for. */
class Bill {
  readonly parts: Record<Part, bigint> = {
    input: 0n,
    cachedInput: 0n,
    cacheWriteInput: 0n,
    audioInput: 0n,
    imageInput: 0n,
    output: 0n,
    imageOutput: 0n,
    request: 0n,
    webSearch: 0n,
  };
  total = 0n;
  /** Some tokens have no known price. */
  unknownPrice = false;

  tokens(part: Part, count: number, price: bigint | undefined): void {
    if (price === undefined && count > 0) this.unknownPrice = true;
    this.fee(part, count, price);
  }

  /** Adds a fee; without a known price, nothing is charged. */
  fee(part: Part, count: number, price: bigint | undefined): void {
    if (count === 0 || price === undefined) return;
    const amount = BigInt(count) * price;
    this.parts[part] += amount;
    this.total += amount;
  }
}

/** Each token once. First come those read from a cache and written to one; of the others those of audio, then of images. */
function chargePrompt(bill: Bill, usage: Usage, prices: Prices): void {
  const { cachedTokens, cachedAudioTokens, cacheWrite5mTokens, cacheWrite1hTokens } = usage;
  const fresh = usage.promptTokens - cachedTokens - cacheWrite5mTokens - cacheWrite1hTokens;
  const freshAudio = Math.min(Math.max(usage.promptAudioTokens - cachedAudioTokens, 0), fresh);
  const audio = prices.input_audio === undefined ? 0 : freshAudio;
  const image = prices.input_image === undefined ? 0 : Math.min(usage.promptImageTokens, fresh - audio);
  const read = prices.input_cache_read;
  const write5m = prices.input_cache_write ?? prices.prompt;
  bill.tokens('input', fresh - audio - image, prices.prompt);
  bill.tokens('audioInput', audio, prices.input_audio);
  bill.tokens('imageInput', image, prices.input_image);
  bill.tokens('cachedInput', cachedTokens - cachedAudioTokens, read ?? prices.prompt);
  // If reads have no price at all, a token that was read is charged as one that was not.
  const readAudio = prices.input_audio_cache_read ?? read ?? prices.input_audio ?? prices.prompt;
  bill.tokens('cachedInput', cachedAudioTokens, readAudio);
  bill.tokens('cacheWriteInput', cacheWrite5mTokens, write5m);
  bill.tokens('cacheWriteInput', cacheWrite1hTokens, prices.input_cache_write_1h ?? write5m);
}

/** Each token once: those of audio, then of images, then of thoughts, then the others. */
function chargeCompletion(bill: Bill, usage: Usage, prices: Prices): void {
  const audio = prices.output_audio === undefined ? 0 : usage.completionAudioTokens;
  const nonAudio = usage.completionTokens - audio;
  const image = prices.output_image === undefined ? 0 : Math.min(usage.completionImageTokens, nonAudio);
  const thoughts = prices.internal_reasoning === undefined ? 0 : Math.min(usage.reasoningTokens, nonAudio - image);
  bill.tokens('output', nonAudio - image - thoughts, prices.completion);
  bill.tokens('output', thoughts, prices.internal_reasoning);
  bill.tokens('output', audio, prices.output_audio);
  bill.tokens('imageOutput', image, prices.output_image);
}

/** Apart from the tokens. */
function chargeFees(bill: Bill, usage: Usage, prices: Prices): void {
  bill.fee('imageInput', usage.promptImages, prices.image);
  bill.fee('imageOutput', usage.images, prices.per_image);
  bill.fee('request', 1, prices.request);
  bill.fee('webSearch', usage.webSearches, prices.web_search);
}

/** Images were made, and the provider reported no tokens for them. */
const hasUncountedImages = ({ images, completionTokens }: Usage): boolean => images > 0 && completionTokens === 0;

/**
 * The price of a usage by a mapping's price lists (src/core/README.md, "cost"). A part that has no price of its own (a
 * cached read, reasoning, audio, an image's tokens) is charged as the whole that it belongs to.
 */
export function costOf(usage: Usage, lists: PriceLists): Cost {
  const prices = pricesFor(lists, usage.promptTokens);
  const bill = new Bill();
  chargePrompt(bill, usage, prices);
  chargeCompletion(bill, usage, prices);
  chargeFees(bill, usage, prices);
  // They cannot be free.
  const unpricedImages = hasUncountedImages(usage) && prices.per_image === undefined;
  return {
    total: bill.total,
    ...bill.parts,
    unknownPrice: unpricedImages || bill.unknownPrice,
    unpricedSearch: usage.webSearches > 0 && prices.web_search === undefined,
  };
}

/** The cost of a call: of the attempt that served it, and of those before. */
export function withCharges(cost: Cost, charges: readonly Charge[]): Cost {
  if (charges.length === 0) return cost;
  const all = [cost, ...charges.map((charge) => charge.cost)];
  const sums: { -readonly [Field in keyof Cost]: Cost[Field] } = { ...cost };
  for (const name of AMOUNTS) sums[name] = all.reduce((sum, each) => sum + each[name], 0n);
  return {
    ...sums,
    unknownPrice: all.some(({ unknownPrice }) => unknownPrice),
    unpricedSearch: all.some(({ unpricedSearch }) => unpricedSearch),
    hasFailedAttempts: true,
  };
}

function costDetails(cost: Cost): CostDetails {
  const prompt = cost.input + cost.cachedInput + cost.cacheWriteInput + cost.audioInput + cost.imageInput;
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
    image_input_cost: usdNumber(cost.imageInput),
    image_output_cost: usdNumber(cost.imageOutput),
    audio_input_cost: usdNumber(cost.audioInput),
    data_storage_cost: 0,
  };
}

function usageInfo(usage: Usage, cost: Cost, limit: OutputLimit | undefined): string | undefined {
  const notes = [];
  if (limit?.isOurs === true) {
    const { tokens, cutBy } = limit;
    notes.push(
      cutBy === undefined
        ? `A usage limit applies to this API key: each choice was limited to ${tokens} tokens.`
        : `Each choice was limited to ${tokens} tokens: the ${cutBy} pays for no more.`,
    );
  }
  if (usage.estimated) notes.push(ESTIMATED);
  if (usage.rough) notes.push(ROUGH);
  if (cost.hasFailedAttempts === true) notes.push(FAILED_ATTEMPTS);
  if (cost.unknownPrice) notes.push(hasUncountedImages(usage) ? UNCOUNTED_IMAGES : UNKNOWN_PRICE);
  else if (cost.unpricedSearch) notes.push('The price of a web search is unknown: the cost does not include it.');
  return notes.length === 0 ? undefined : notes.join(' ');
}

const UNKNOWN_PRICE = 'A price of this model is unknown, so the cost is too.';
const UNCOUNTED_IMAGES =
  'The images have no price per image, and the provider reported no tokens for them: the cost is unknown.';
const ESTIMATED = 'The provider reported no usage: token counts are estimated.';
const FAILED_ATTEMPTS = 'The cost includes earlier attempts of this call, which failed and were charged for.';
const ROUGH = 'The estimate is rough: not all of the text was counted.';

/** Cost fields of any answer's `usage`, in USD; the cost is absent when a price that it needs is unknown. */
export function costFields(
  usage: Usage,
  cost: Cost,
  limit?: OutputLimit,
): Pick<ChatUsage, 'cost' | 'cost_details' | 'info'> {
  const info = usageInfo(usage, cost, limit);
  return {
    ...(cost.unknownPrice ? {} : { cost: usdNumber(cost.total), cost_details: costDetails(cost) }),
    ...(info === undefined ? {} : { info }),
  };
}

/** The response's `usage`, with its cost, and the limit that a key's spend limit set to the answer. */
export function chatUsage(usage: Usage, cost: Cost, limit?: OutputLimit): ChatUsage {
  const cacheWrite = usage.cacheWrite5mTokens + usage.cacheWrite1hTokens;
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
    ...costFields(usage, cost, limit),
  };
}
