import { type ApiError, invalidRequest } from '../../domain/errors.ts';
import type { Mapping, Prices } from '../../domain/model.ts';
import type { Bound, Reservation, WorstCase } from '../../domain/reservation.ts';
import { guessTokens } from '../../domain/usage.ts';
import type { PolicyInput } from '../../generated/types.ts';
import type { Demand } from './demand.ts';

/** Tokens of one generated image, at most, where images are charged by the token. */
const IMAGE_TOKENS = 8192;
/** Images that a chat's choice may hold, at most, where each has a price. */
const IMAGES_OF_CHOICE = 10;

type PriceLists = Pick<Mapping, 'prices' | 'tiers'>;

const listsOf = ({ prices, tiers = [] }: PriceLists): readonly Prices[] => [
  prices,
  ...tiers.map((tier) => tier.prices),
];

/** The highest of some prices over all lists, in pico-dollars; what has no known price costs nothing. */
function highestPrice(lists: PriceLists, names: readonly (keyof Prices)[]): bigint {
  let most = 0n;
  for (const prices of listsOf(lists)) {
    for (const name of names) {
      const price = prices[name] ?? 0n;
      if (price > most) most = price;
    }
  }
  return most;
}

/** While a spend limit applies, a mapping whose charge for the action cannot be told may not serve: the limit could not be kept. */
export const isPriced = (mapping: Mapping, action: PolicyInput['action']): boolean =>
  listsOf(mapping).every((prices) => hasPrices(prices, mapping.freeFlag, action));

function hasPrices(prices: Prices, freeFlag: boolean, action: PolicyInput['action']): boolean {
  const { prompt, completion, output_image: imageToken, per_image: image, request } = prices;
  switch (action) {
    case 'chat':
      return prompt !== undefined && completion !== undefined;
    case 'image':
      return image !== undefined || (prompt !== undefined && (imageToken ?? completion) !== undefined);
    case 'moderation':
      // Nobody reports its tokens: a price for them could not be charged.
      return prompt === 0n || request !== undefined || freeFlag;
  }
}

/**
 * The longest answer where the caller names none: the mapping's own, cut to the room that its context has next to a prompt of the
 * usual density; else the context without a dense prompt, since a provider refuses a maximum that does not fit; else the default.
 */
function ownMaximum({ maxOutput, contextLength }: Mapping, { textTokens, defaultMaxOutputTokens }: Demand): number {
  if (contextLength === undefined) return maxOutput ?? defaultMaxOutputTokens;
  const room = contextLength - (maxOutput === undefined ? Math.ceil(textTokens / 2) : guessTokens(textTokens));
  return Math.max(1, Math.min(maxOutput ?? room, room));
}

function largestOutput(mapping: Mapping, demand: Demand): number {
  const { maxOutputTokens: named } = demand;
  if (named === undefined) return ownMaximum(mapping, demand);
  return Math.min(named, mapping.maxOutput ?? named);
}

function inputPrices({ hasAudio, hasPictures }: Demand): (keyof Prices)[] {
  return [
    'prompt',
    'input_cache_read',
    'input_cache_write',
    'input_cache_write_1h',
    ...(hasAudio ? (['input_audio', 'input_audio_cache_read'] as const) : []),
    ...(hasPictures ? (['input_image'] as const) : []),
  ];
}

const outputPrices = ({ speaks }: Demand, { outputModalities }: Mapping): (keyof Prices)[] => [
  'completion',
  'internal_reasoning',
  'output_image',
  ...(speaks || !outputModalities.includes('text') ? (['output_audio'] as const) : []),
];

/**
 * The most that a mapping may charge for a request: `costOf` of no usage within its bounds is more (src/admin/README.md, "hard
 * cap"). Undefined: unknown, since a price is missing.
 */
export function boundOf(mapping: Mapping, demand: Demand): Bound | undefined {
  const { action, searches } = demand;
  if (!isPriced(mapping, action)) return undefined;
  const request = highestPrice(mapping, ['request']);
  if (action === 'moderation') return { fixed: request, perOutputToken: 0n, maxOutputTokens: 0 };

  const window = action === 'chat' ? (mapping.contextLength ?? demand.mediaTokens) : demand.mediaTokens;
  const inputTokens = demand.textTokens + Math.min(demand.mediaTokens, window);
  const choices = BigInt(demand.choices);
  const outputPrice = highestPrice(mapping, outputPrices(demand, mapping));
  const imagePrice = highestPrice(mapping, ['per_image']);
  const prompt =
    request +
    BigInt(inputTokens) * highestPrice(mapping, inputPrices(demand)) +
    BigInt(demand.promptImages) * highestPrice(mapping, ['image']);
  if (action === 'image') {
    const tokens = BigInt(Math.min(IMAGE_TOKENS, mapping.maxOutput ?? IMAGE_TOKENS));
    return { fixed: prompt + choices * (imagePrice + tokens * outputPrice), perOutputToken: 0n, maxOutputTokens: 0 };
  }

  const fixed =
    prompt +
    BigInt(searches) * highestPrice(mapping, ['web_search']) +
    choices * (BigInt(IMAGES_OF_CHOICE) * imagePrice + BigInt(demand.predictedTokens) * outputPrice);
  const maxOutputTokens = outputPrice === 0n ? 0 : largestOutput(mapping, demand);
  return { fixed, perOutputToken: choices * outputPrice, maxOutputTokens };
}

/** What a mapping charges at most, when the answer is as long as it may be. */
export const mostOf = (bound: Bound): bigint => costAt(bound, bound.maxOutputTokens);

const costAt = ({ fixed, perOutputToken, maxOutputTokens }: Bound, tokens: number): bigint =>
  fixed + perOutputToken * BigInt(Math.min(tokens, maxOutputTokens));

/** Output tokens of each choice that an amount pays for; undefined: as many as may come. */
function affordable(bound: Bound, amount: bigint): number | undefined {
  if (mostOf(bound) <= amount) return undefined;
  return Number((amount - bound.fixed) / bound.perOutputToken);
}

/**
 * What a call may cost at the most expensive of its candidates; there is at least one. A caller who named no maximum is served
 * with as much output as their key's limit pays for, but not with less than an answer needs.
 */
export function worstCaseOf(
  bounds: readonly Bound[],
  { action, maxOutputTokens: named, minOutputTokens }: Demand,
): WorstCase {
  const most = Math.max(...bounds.map((bound) => bound.maxOutputTokens));
  const at = (tokens: number): bigint =>
    bounds.map((bound) => costAt(bound, tokens)).reduce((dearer, cost) => (cost > dearer ? cost : dearer));
  if (action !== 'chat' || named !== undefined) {
    const amount = at(most);
    return { least: amount, within: () => ({ amount, maxOutputTokens: null }) };
  }
  return {
    least: at(minOutputTokens),
    within(amount) {
      const tokens = Math.min(most, ...bounds.map((bound) => affordable(bound, amount) ?? most));
      return { amount: at(tokens), maxOutputTokens: tokens };
    },
  };
}

/** How long each choice of an answer may get, so that its cost stays within what was reserved. */
export interface OutputLimit {
  readonly tokens: number;
  /** The caller named no maximum, or a larger one. */
  readonly isOurs: boolean;
  /** The limit that pays for no more, though the model could have given more. */
  readonly cutBy: string | undefined;
}

/** What a reservation leaves of a candidate's output; undefined where tokens of output cost nothing. */
export function outputLimit(
  bound: Bound | undefined,
  reservation: Reservation,
  named: number | undefined,
): OutputLimit | undefined {
  if (bound === undefined || bound.maxOutputTokens === 0) return undefined;
  const tokens = Math.min(bound.maxOutputTokens, reservation.maxOutputTokens ?? bound.maxOutputTokens);
  return { tokens, isOurs: tokens !== named, cutBy: tokens < bound.maxOutputTokens ? reservation.limit : undefined };
}

/** The error for a key with a limit when no candidate has a known price: it is not the key's fault. */
export function unpricedCall(candidates: readonly Mapping[], { action }: Demand): ApiError {
  const [custom] = candidates.filter((mapping) => mapping.custom);
  const what = action === 'moderation' ? 'price of a request' : 'price';
  const advice =
    custom === undefined
      ? 'Name another model, or ask the operator to state its price (for an upstream: UPSTREAM_<NAME>_PRICES).'
      : `Name another model, or have an administrator state its price (custom-models update ${custom.id} --price).`;
  return invalidRequest(
    `A usage limit applies to this API key, and no ${what} of the model is known at any permitted provider: the limit could not be kept. ${advice}`,
    action === 'moderation' ? null : '/model',
  );
}
