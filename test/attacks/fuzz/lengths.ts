// How long what is repeated in headers and addresses is.

export const times = (count: number, text: string): string => text.repeat(count);

/** Characters of what is repeated. */
export type Lengths = readonly [number, ...number[]];
export const SHORT: Lengths = [10, 100];
/** Around what the product, or Node, takes at most. */
export const LONG: Lengths = [4000, 7900, 8200, 12_000, 15_000];
