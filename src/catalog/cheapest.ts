import type { Mapping } from '../domain/model.ts';

/**
 * Order of preference by price: the sum of the prices of one input and one output token; equal or without any, the price per
 * image plus the fee per request; ties by id. An unknown price comes last.
 */
export function comparePrice(a: Mapping, b: Mapping): number {
  const byTokens = compareKnown(tokenPrice(a), tokenPrice(b));
  if (byTokens !== 0) return byTokens;
  const byUnits = compareKnown(unitPrice(a), unitPrice(b));
  if (byUnits !== 0) return byUnits;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

const tokenPrice = ({ prices }: Mapping): bigint | undefined =>
  prices.prompt === undefined || prices.completion === undefined ? undefined : prices.prompt + prices.completion;

const unitPrice = ({ prices }: Mapping): bigint | undefined =>
  prices.per_image === undefined && prices.request === undefined
    ? undefined
    : (prices.per_image ?? 0n) + (prices.request ?? 0n);

function compareKnown(a: bigint | undefined, b: bigint | undefined): number {
  if (a === undefined) return b === undefined ? 0 : 1;
  if (b === undefined) return -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
