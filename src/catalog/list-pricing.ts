import type { Mapping, Prices } from '../domain/model.ts';
import { formatUsd } from '../domain/money.ts';
import type { ModelPricing, PricingTier } from '../generated/types.ts';

const COMMON = [
  'prompt',
  'completion',
  'image',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'request',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'input_image',
  'output_image',
] as const;

/** What the specification has in a model's pricing only, not in a mapping's. */
const OF_A_MODEL = [...COMMON, 'web_search', 'internal_reasoning'] as const;

type Charged = Pick<Mapping, 'prices' | 'tiers'>;

/** The specification's object of prices, and next to it what long prompts cost, which it has no place for. */
interface ListedPrices {
  readonly pricing: ModelPricing;
  readonly pricing_tiers?: PricingTier[];
}

/** A mapping's prices as the list shows them: decimal strings in USD, unknown ones absent. */
export const mappingPrices = (mapping: Charged): ListedPrices => pricesOf(mapping, COMMON);

/** The prices of the model's cheapest mapping. */
export const modelPrices = (mapping: Charged): ListedPrices => pricesOf(mapping, OF_A_MODEL);

function pricesOf({ prices, tiers = [] }: Charged, names: typeof COMMON | typeof OF_A_MODEL): ListedPrices {
  const pricing: ModelPricing = flatPricing(prices, names);
  if (prices.per_image !== undefined) pricing.per_image = { default: formatUsd(prices.per_image) };
  if (tiers.length === 0) return { pricing };
  const listed = tiers.map(({ abovePromptTokens, prices: higher }) => ({
    above_prompt_tokens: abovePromptTokens,
    ...flatPricing(higher, names),
  }));
  return { pricing, pricing_tiers: listed };
}

function flatPricing(
  prices: Prices,
  names: typeof COMMON | typeof OF_A_MODEL,
): Omit<PricingTier, 'above_prompt_tokens'> {
  const pricing: Omit<PricingTier, 'above_prompt_tokens'> = {};
  for (const name of names) {
    const price = prices[name];
    if (price !== undefined) pricing[name] = formatUsd(price);
  }
  return pricing;
}
