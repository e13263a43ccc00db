import type { Prices } from '../domain/model.ts';
import { formatUsd } from '../domain/money.ts';
import type { ModelPricing } from '../generated/types.ts';

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
] as const;

/** A mapping's prices as the list shows them: decimal strings in USD, unknown ones absent. */
export function mappingPricing(prices: Prices): ModelPricing {
  const pricing: ModelPricing = {};
  for (const name of COMMON) {
    const price = prices[name];
    if (price !== undefined) pricing[name] = formatUsd(price);
  }
  if (prices.per_image !== undefined) pricing.per_image = { default: formatUsd(prices.per_image) };
  return pricing;
}

/** The same with the two prices that stand in a model's pricing only. */
export function modelPricing(prices: Prices): ModelPricing {
  const pricing = mappingPricing(prices);
  if (prices.web_search !== undefined) pricing.web_search = formatUsd(prices.web_search);
  if (prices.internal_reasoning !== undefined) pricing.internal_reasoning = formatUsd(prices.internal_reasoning);
  return pricing;
}
