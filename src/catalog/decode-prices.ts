import type { Prices, PriceTier } from '../domain/model.ts';
import { parseUsd } from '../domain/money.ts';
import { dataFault, type Entry } from './decode-entry.ts';

/** Every price that a data file may state. */
export const PRICE_NAMES = [
  'prompt',
  'completion',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'input_image',
  'output_image',
  'image',
  'request',
  'web_search',
  'per_image',
] as const satisfies readonly (keyof Prices)[];

export type PriceName = (typeof PRICE_NAMES)[number];

const isPriceName = (name: string): name is PriceName => PRICE_NAMES.some((known) => known === name);

/** Decimal strings in USD, per token where the price is one of tokens, as pico-dollars. */
export function decodePrices(entry: Entry): Prices {
  const prices: { -readonly [K in keyof Prices]: Prices[K] } = {};
  for (const name of entry.keys()) {
    if (!isPriceName(name)) throw dataFault(entry.placeOf(name));
    prices[name] = decodePrice(entry, name);
  }
  return prices;
}

function decodePrice(entry: Entry, name: PriceName): bigint {
  const text = entry.text(name);
  try {
    return parseUsd(text);
  } catch (error) {
    throw dataFault(entry.placeOf(name), error);
  }
}

/** Tiers by rising threshold; anything else is a fault of the data. */
export function decodeTiers(entry: Entry): PriceTier[] | undefined {
  let last = 0;
  return entry.optionalList('tiers', (tier) => {
    const abovePromptTokens = tier.count('abovePromptTokens');
    if (abovePromptTokens <= last) throw dataFault(tier.placeOf('abovePromptTokens'));
    last = abovePromptTokens;
    return { abovePromptTokens, prices: decodePrices(tier.entry('prices')) };
  });
}
