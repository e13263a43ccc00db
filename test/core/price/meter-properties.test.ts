// The arithmetic of costs against an oracle that charges token by token in exact fractions, and what must hold of any cost.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Cost, costOf } from '../../../src/core/cost.ts';
import { PICO_PER_USD } from '../../../src/domain/limits.ts';
import type { Prices, PriceTier } from '../../../src/domain/model.ts';
import { normaliseUsage, type Usage } from '../../../src/domain/usage.ts';

interface Lists {
  readonly prices: Prices;
  readonly tiers: readonly PriceTier[];
}

/** A fraction of a US dollar. */
interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const ZERO: Fraction = { numerator: 0n, denominator: 1n };

const plus = (a: Fraction, b: Fraction): Fraction => ({
  numerator: a.numerator * b.denominator + b.numerator * a.denominator,
  denominator: a.denominator * b.denominator,
});

const inUsd = (pico: bigint | undefined): Fraction | undefined =>
  pico === undefined ? undefined : { numerator: pico, denominator: PICO_PER_USD };

const equal = (usd: Fraction, pico: bigint): boolean => usd.numerator * PICO_PER_USD === pico * usd.denominator;

/** One token and everything that could set its price, what wins first. A kind without a price does not claim it. */
type Token = readonly (bigint | undefined)[];

const repeat = <T>(times: number, value: T): T[] => Array.from({ length: Math.max(0, times) }, () => value);

/** Gives the first tokens to the first claim that has a price, the next ones to the next, and the rest to `other`. */
function deal(count: number, claims: readonly [count: number, price: bigint | undefined][], other: Token): Token[] {
  const tokens = claims.flatMap(([wanted, price]) => (price === undefined ? [] : repeat(wanted, [price])));
  return [...tokens, ...repeat(count, other)].slice(0, Math.max(0, count));
}

function oracle(usage: Usage, { prices: base, tiers }: Lists): { usd: Fraction; unknown: boolean } {
  const reached = tiers.filter((tier) => usage.promptTokens > tier.abovePromptTokens);
  const p = reached.reduce((best, tier) => (tier.abovePromptTokens >= best.above ? above(tier) : best), {
    above: -1,
    prices: base,
  }).prices;
  const special = usage.cachedTokens + usage.cacheWrite5mTokens + usage.cacheWrite1hTokens;
  const tokens: Token[] = [
    ...repeat(usage.cachedAudioTokens, [p.input_audio_cache_read, p.input_cache_read, p.input_audio, p.prompt]),
    ...repeat(usage.cachedTokens - usage.cachedAudioTokens, [p.input_cache_read, p.prompt]),
    ...repeat(usage.cacheWrite5mTokens, [p.input_cache_write, p.prompt]),
    ...repeat(usage.cacheWrite1hTokens, [p.input_cache_write_1h, p.input_cache_write, p.prompt]),
    ...deal(
      usage.promptTokens - special,
      [
        [usage.promptAudioTokens - usage.cachedAudioTokens, p.input_audio],
        [usage.promptImageTokens, p.input_image],
      ],
      [p.prompt],
    ),
    ...deal(
      usage.completionTokens,
      [
        [usage.completionAudioTokens, p.output_audio],
        [usage.completionImageTokens, p.output_image],
        [usage.reasoningTokens, p.internal_reasoning],
      ],
      [p.completion],
    ),
  ];
  const charged = tokens.map((token) => token.find((price) => price !== undefined));
  const fees = [
    ...repeat(usage.promptImages, p.image),
    ...repeat(usage.images, p.per_image),
    ...repeat(usage.webSearches, p.web_search),
    p.request,
  ];
  const usd = [...charged, ...fees].map(inUsd).reduce<Fraction>((sum, price) => plus(sum, price ?? ZERO), ZERO);
  const freeImages = usage.images > 0 && usage.completionTokens === 0 && p.per_image === undefined;
  return { usd, unknown: freeImages || charged.includes(undefined) };
}

const above = ({ abovePromptTokens, prices }: PriceTier) => ({ above: abovePromptTokens, prices });

const NAMES = [
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
] as const;

const counts = (max: number) =>
  fc
    .record({
      promptTokens: fc.nat(max),
      completionTokens: fc.nat(max),
      reasoningTokens: fc.nat(max),
      cachedTokens: fc.nat(max),
      cachedAudioTokens: fc.nat(max),
      cacheWrite5mTokens: fc.nat(max),
      cacheWrite1hTokens: fc.nat(max),
      promptAudioTokens: fc.nat(max),
      promptImageTokens: fc.nat(max),
      promptVideoTokens: fc.nat(max),
      completionAudioTokens: fc.nat(max),
      completionImageTokens: fc.nat(max),
      promptImages: fc.nat(4),
      images: fc.nat(4),
      webSearches: fc.nat(4),
    })
    .map(normaliseUsage);

const price = fc.bigInt(0n, 10n ** 9n);
const someOf = (names: readonly (keyof Prices)[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, price])), { requiredKeys: [] });
const priceList: fc.Arbitrary<Prices> = someOf(NAMES);

const lists = (max: number): fc.Arbitrary<Lists> =>
  fc.record({
    prices: priceList,
    tiers: fc
      .uniqueArray(fc.record({ abovePromptTokens: fc.nat(max), prices: priceList }), {
        maxLength: 3,
        selector: (tier) => tier.abovePromptTokens,
      })
      .map((tiers) => tiers.sort((a, b) => a.abovePromptTokens - b.abovePromptTokens)),
  });

const partsOf = ({
  total: _,
  unknownPrice: __,
  unpricedSearch: ___,
  hasFailedAttempts: ____,
  ...parts
}: Cost): bigint[] => Object.values(parts);

describe('any cost', () => {
  it('is what an oracle finds that charges token by token, tiers and missing prices included', () => {
    fc.assert(
      fc.property(counts(40), lists(40), (usage, priced) => {
        const { total, unknownPrice } = costOf(usage, priced);
        const { usd, unknown } = oracle(usage, priced);
        expect([equal(usd, total), unknownPrice]).toEqual([true, unknown]);
      }),
      { numRuns: 2000 },
    );
  });

  it('is the sum of its parts, of which none is negative', () => {
    fc.assert(
      fc.property(counts(1_000_000), lists(1_000_000), (usage, priced) => {
        const cost = costOf(usage, priced);
        expect(partsOf(cost).every((part) => part >= 0n)).toBe(true);
        expect(partsOf(cost).reduce((sum, part) => sum + part, 0n)).toBe(cost.total);
      }),
    );
  });

  it('charges each token exactly once, whatever has a price of its own', () => {
    const perToken = NAMES.slice(0, 11);
    fc.assert(
      fc.property(counts(1_000_000), fc.subarray(perToken), (usage, priced) => {
        const names = [...priced, 'prompt', 'completion'];
        const prices: Prices = Object.fromEntries(names.map((name) => [name, 1n]));
        expect(costOf(usage, { prices }).total).toBe(BigInt(usage.promptTokens + usage.completionTokens));
      }),
    );
  });

  /** One more of a count is one more of what it is a part of. */
  const GROWTHS: readonly (readonly (keyof Usage)[])[] = [
    ['promptTokens'],
    ['promptTokens', 'cachedTokens'],
    ['promptTokens', 'cachedTokens', 'promptAudioTokens', 'cachedAudioTokens'],
    ['promptTokens', 'cacheWrite5mTokens'],
    ['promptTokens', 'cacheWrite1hTokens'],
    ['promptTokens', 'promptAudioTokens'],
    ['promptTokens', 'promptImageTokens'],
    ['completionTokens'],
    ['completionTokens', 'reasoningTokens'],
    ['completionTokens', 'completionAudioTokens'],
    ['completionTokens', 'completionImageTokens'],
    ['promptImages'],
    ['images'],
    ['webSearches'],
  ];

  it('never falls when a count grows', () => {
    const more = (usage: Usage, counted: readonly (keyof Usage)[], by: number): Usage => ({
      ...usage,
      ...Object.fromEntries(counted.map((name) => [name, Number(usage[name]) + by])),
    });
    fc.assert(
      fc.property(
        counts(1000),
        priceList,
        fc.constantFrom(...GROWTHS),
        fc.integer({ min: 1, max: 1000 }),
        (usage, prices, counted, by) => {
          const before = costOf(usage, { prices }).total;
          expect(costOf(more(usage, counted, by), { prices }).total).toBeGreaterThanOrEqual(before);
        },
      ),
    );
  });
});
