import type { Mapping } from '../domain/model.ts';

/**
 * Order of preference by price. First those whose token prices are known, by the sum of one input and one output token, then by
 * their fees; then those of which fees alone are known; then the rest. Ties by id.
 */
export function comparePrice(a: Mapping, b: Mapping): number {
  const [aTokens, bTokens] = [tokenPrice(a), tokenPrice(b)];
  if (aTokens !== bTokens) return compareKnown(aTokens, bTokens);
  const without = aTokens === undefined ? undefined : 0n; // where token prices are stated, no stated fee means none
  const [aFees, bFees] = [fees(a) ?? without, fees(b) ?? without];
  if (aFees !== bFees) return compareKnown(aFees, bFees);
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

const tokenPrice = ({ prices }: Mapping): bigint | undefined =>
  prices.prompt === undefined || prices.completion === undefined ? undefined : prices.prompt + prices.completion;

/** Per generated image and per request. */
const fees = ({ prices }: Mapping): bigint | undefined =>
  prices.per_image === undefined && prices.request === undefined
    ? undefined
    : (prices.per_image ?? 0n) + (prices.request ?? 0n);

/** Of two that differ: what is not known comes last. */
function compareKnown(a: bigint | undefined, b: bigint | undefined): number {
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
