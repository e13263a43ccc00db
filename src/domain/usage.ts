/**
 * Consumption of one call, in one normal form for every provider (src/domain/README.md, "usage"): `promptTokens` includes
 * cached reads and writes, `completionTokens` includes reasoning. Every count is a whole number, zero where nothing was
 * reported.
 */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Part of `completionTokens`. */
  readonly reasoningTokens: number;
  /** Read from the provider's cache; part of `promptTokens`, as are the next six. */
  readonly cachedTokens: number;
  /** Part of `cachedTokens`, and where the provider counts audio at all, of `promptAudioTokens`. */
  readonly cachedAudioTokens: number;
  readonly cacheWrite5mTokens: number;
  readonly cacheWrite1hTokens: number;
  readonly promptAudioTokens: number;
  readonly promptImageTokens: number;
  readonly promptVideoTokens: number;
  /** Part of `completionTokens`, as is the next. */
  readonly completionAudioTokens: number;
  readonly completionImageTokens: number;
  /** Images in the prompt. */
  readonly promptImages: number;
  /** Generated images. */
  readonly images: number;
  readonly webSearches: number;
  /** True when the provider gave no numbers and ours are an estimate. */
  readonly estimated: boolean;
  /** True for an estimate that did not count all of the text. */
  readonly rough: boolean;
}

/** Nothing consumed. */
export const NO_USAGE: Usage = {
  promptTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0,
  cachedAudioTokens: 0,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  promptAudioTokens: 0,
  promptImageTokens: 0,
  promptVideoTokens: 0,
  completionAudioTokens: 0,
  completionImageTokens: 0,
  promptImages: 0,
  images: 0,
  webSearches: 0,
  estimated: false,
  rough: false,
};

/**
 * A usage whose parts fit into their wholes: an upstream's numbers are clamped, so that no price is ever taken of a negative
 * remainder. The parts of the prompt claim it in this order: cached reads, writes of an hour, writes of five minutes.
 */
export function normaliseUsage(reported: Partial<Usage>): Usage {
  const all = { ...NO_USAGE, ...reported };
  // Adapters add up what was reported; such a sum can be larger than any number that can be stored.
  const promptTokens = Math.min(all.promptTokens, Number.MAX_SAFE_INTEGER);
  const completionTokens = Math.min(all.completionTokens, Number.MAX_SAFE_INTEGER);
  const usage = { ...all, promptTokens, completionTokens };
  const cachedTokens = Math.min(usage.cachedTokens, usage.promptTokens);
  const cacheWrite1hTokens = Math.min(usage.cacheWrite1hTokens, usage.promptTokens - cachedTokens);
  const uncached = usage.promptTokens - cachedTokens - cacheWrite1hTokens;
  return {
    ...usage,
    cachedTokens,
    cachedAudioTokens: Math.min(usage.cachedAudioTokens, cachedTokens),
    cacheWrite1hTokens,
    cacheWrite5mTokens: Math.min(usage.cacheWrite5mTokens, uncached),
    promptAudioTokens: Math.min(usage.promptAudioTokens, usage.promptTokens),
    promptImageTokens: Math.min(usage.promptImageTokens, usage.promptTokens),
    promptVideoTokens: Math.min(usage.promptVideoTokens, usage.promptTokens),
    reasoningTokens: Math.min(usage.reasoningTokens, usage.completionTokens),
    completionAudioTokens: Math.min(usage.completionAudioTokens, usage.completionTokens),
    completionImageTokens: Math.min(usage.completionImageTokens, usage.completionTokens),
  };
}

/** Every count of a usage. */
const COUNTS = [
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
  'cachedTokens',
  'cacheWrite5mTokens',
  'cacheWrite1hTokens',
  'cachedAudioTokens',
  'promptAudioTokens',
  'promptImageTokens',
  'promptVideoTokens',
  'completionAudioTokens',
  'completionImageTokens',
  'promptImages',
  'images',
  'webSearches',
] as const satisfies readonly Exclude<keyof Usage, 'estimated' | 'rough'>[];

function added(one: Usage, other: Usage): Usage {
  const sum = { ...one, estimated: one.estimated || other.estimated, rough: one.rough || other.rough };
  for (const count of COUNTS) sum[count] += other[count];
  return sum;
}

/** The sum of what several attempts consumed. */
export const sumUsage = (usages: readonly Usage[]): Usage => normaliseUsage(usages.reduce(added, NO_USAGE));

/**
 * The token counts that are stored with each call. Columns, the settling statement, sums of reports and the CSV follow this list;
 * a new one also needs a migration, and its field in the schemas `call` and `usage`.
 */
export const STORED_TOKENS = [
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
  'cachedTokens',
  'cacheWriteTokens',
] as const;

export type StoredTokens = Readonly<Record<(typeof STORED_TOKENS)[number], number>>;

export const storedTokens = (usage: Usage): StoredTokens => ({
  promptTokens: usage.promptTokens,
  completionTokens: usage.completionTokens,
  reasoningTokens: usage.reasoningTokens,
  cachedTokens: usage.cachedTokens,
  cacheWriteTokens: usage.cacheWrite5mTokens + usage.cacheWrite1hTokens,
});

/** A guess at the tokens of text that nobody counted: one for every four bytes of UTF-8, rounded up. */
export const guessTokens = (bytes: number): number => Math.ceil(bytes / 4);
