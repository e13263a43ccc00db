import { priceText } from './decimal.ts';
import { PRICE_NAMES, type PriceName } from './vocabulary.ts';

/** Prices in pico-dollars; what is not in it is not known. */
export type PriceList = ReadonlyMap<PriceName, bigint>;

/** The prices for prompts of more tokens than a tier names. */
export interface TierList {
  readonly abovePromptTokens: number;
  readonly prices: PriceList;
}

/** All that a mapping charges. */
export interface Charges {
  readonly prices: PriceList;
  /** Shortest prompts first. */
  readonly tiers: readonly TierList[];
}

/** The same change made to the base prices and to those of every tier. */
export const changed = ({ prices, tiers }: Charges, change: (list: PriceList) => PriceList): Charges => ({
  prices: change(prices),
  tiers: tiers.map((tier) => ({ ...tier, prices: change(tier.prices) })),
});

/** As the data files write it: decimal strings in USD, in the order of the specification. */
export function writtenPrices(list: PriceList): Record<string, string> {
  const written: Record<string, string> = {};
  for (const name of PRICE_NAMES) {
    const price = list.get(name);
    if (price !== undefined) written[name] = priceText(price);
  }
  return written;
}
