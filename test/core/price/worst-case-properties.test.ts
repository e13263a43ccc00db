// Whatever a provider reports within the bounds of a call, and whatever its prices are: it never costs more than was held back.
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, it } from 'vitest';
import { costOf } from '../../../src/core/cost.ts';
import { boundOf, type Demand } from '../../../src/core/operations.ts';
import { CallBounds, chatDemand, imageDemand } from '../../../src/core/worst-case.ts';
import { type Mapping, type Prices, TEXT_ONLY } from '../../../src/domain/model.ts';
import { normaliseUsage, type Usage } from '../../../src/domain/usage.ts';
import type { ChatRequest, ContentPart } from '../../../src/generated/types.ts';

const OPTIONAL = [
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

/** Many are nothing, so that a single price decides. */
const price = fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n ** 8n));

const priceList: fc.Arbitrary<Prices> = fc
  .tuple(price, price, fc.array(fc.tuple(fc.constantFrom(...OPTIONAL), price), { maxLength: 3 }))
  .map(([prompt, completion, others]) => ({ prompt, completion, ...Object.fromEntries(others) }));

const mapping: fc.Arbitrary<Mapping> = fc
  .record({
    prices: priceList,
    tiers: fc.array(fc.record({ abovePromptTokens: fc.nat(20_000), prices: priceList }), { maxLength: 2 }),
    maxOutput: fc.integer({ min: 1, max: 5000 }),
    contextLength: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
    outputModalities: fc.constantFrom(['text'], ['text', 'audio'], ['audio'], ['text', 'image']),
    id: fc.uuid(),
  })
  .map(({ tiers, contextLength, ...rest }) => ({
    ...TEXT_ONLY,
    providerId: 'acme',
    modelId: 'model',
    externalId: 'model',
    custom: false,
    names: [],
    providerNames: [],
    freeFlag: false,
    tiers: tiers.toSorted((a, b) => a.abovePromptTokens - b.abovePromptTokens),
    ...(contextLength === undefined ? {} : { contextLength }),
    ...rest,
  }));

const text = fc.string({ unit: 'binary', maxLength: 200 });

const part: fc.Arbitrary<ContentPart> = fc.oneof(
  text.map((said): ContentPart => ({ type: 'text', text: said })),
  fc.constant<ContentPart>({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }),
  fc.constant<ContentPart>({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }),
  fc.constant<ContentPart>({ type: 'video_url', video_url: { url: 'https://films.test/1' } }),
  fc.constant<ContentPart>({ type: 'file', file: { file_id: 'file-1' } }),
);

const request: fc.Arbitrary<ChatRequest> = fc
  .record(
    {
      messages: fc.array(fc.record({ role: fc.constant('user' as const), content: fc.array(part, { maxLength: 4 }) }), {
        minLength: 1,
        maxLength: 3,
      }),
      n: fc.integer({ min: 1, max: 8 }),
      max_tokens: fc.integer({ min: 1, max: 8000 }),
      modalities: fc.subarray(['text', 'audio'], { minLength: 1 }),
      web_search_options: fc.constant({}),
      prediction: text.map((content) => ({ type: 'content', content })),
    },
    { requiredKeys: ['messages'] },
  )
  .map((rest) => ({ model: 'model', ...rest }));

/** Parts of a whole, each up to all of it: what does not fit is clamped, as an upstream's report is. */
const share = fc.oneof(
  { weight: 2, arbitrary: fc.constant(1) },
  fc.constant(0),
  fc.double({ min: 0, max: 1, noNaN: true }),
);
const shares = fc.array(share, { minLength: 14, maxLength: 14 });

function leastOf({ least }: CallBounds): bigint {
  if (typeof least !== 'bigint') throw new Error('a candidate with all prices has a bound');
  return least;
}

/** A report within the bounds that the demand states, for so much output in each choice. */
function reported(demand: Demand, { contextLength }: Mapping, tokens: number, share: readonly number[]): Usage {
  const of = (index: number, whole: number) => Math.round((share[index] ?? 0) * whole);
  const promptTokens = of(0, demand.textTokens + Math.min(demand.mediaTokens, contextLength ?? demand.mediaTokens));
  const completionTokens = of(1, demand.choices * (tokens + demand.predictedTokens));
  const cachedTokens = of(2, promptTokens);
  return normaliseUsage({
    promptTokens,
    completionTokens,
    cachedTokens,
    cachedAudioTokens: demand.hasAudio ? of(3, cachedTokens) : 0,
    cacheWrite5mTokens: of(4, promptTokens),
    cacheWrite1hTokens: of(5, promptTokens),
    promptAudioTokens: demand.hasAudio ? of(6, promptTokens) : 0,
    promptImageTokens: demand.hasPictures ? of(7, promptTokens) : 0,
    reasoningTokens: of(8, completionTokens),
    completionImageTokens: of(9, completionTokens),
    completionAudioTokens: demand.speaks ? of(10, completionTokens) : 0,
    promptImages: of(11, demand.promptImages),
    images: of(12, 10 * demand.choices),
    webSearches: of(13, demand.searches),
  });
}

it('a chat', () => {
  fc.assert(
    fc.property(
      fc.array(mapping, { minLength: 1, maxLength: 3 }),
      request,
      shares,
      fc.bigInt(0n, 10n ** 13n),
      fc.integer({ min: 1, max: 1000 }),
      (all, asked, share, more, least) => {
        const demand = chatDemand(asked, 16_384, least);
        const bounds = new CallBounds(all, () => demand);
        const left = leastOf(bounds) + more;

        const reservation = { ...bounds.within(left), limit: 'the limit' };

        expect(reservation.amount <= left).toBe(true);
        for (const each of all.filter((candidate) => bounds.has(candidate))) {
          // Where tokens of output cost nothing there may be any number of them.
          const tokens = bounds.outputLimit(each, reservation)?.tokens ?? 1_000_000;
          const longest = boundOf(each, demand)?.maxOutputTokens || 1;
          expect(tokens).toBeGreaterThanOrEqual(Math.min(least, demand.maxOutputTokens ?? least, longest));
          expect(costOf(reported(demand, each, tokens, share), each).total <= reservation.amount).toBe(true);
        }
      },
    ),
    { numRuns: 3000 },
  );
});

it('images', () => {
  const drawing = fc.record({ prompt: text, n: fc.integer({ min: 1, max: 10 }) }, { requiredKeys: ['prompt'] });
  fc.assert(
    fc.property(mapping, drawing, shares, (drawn, asked, share) => {
      const demand = imageDemand(asked);
      const { choices } = demand;
      const usage = reported(demand, drawn, Math.min(8192, drawn.maxOutput ?? 8192), share);

      const { total } = costOf({ ...usage, images: Math.min(usage.images, choices), completionAudioTokens: 0 }, drawn);

      expect(total <= leastOf(new CallBounds([drawn], () => demand))).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

it('what an amount pays for is the most that it pays for', () => {
  const priced = fc
    .tuple(mapping, fc.bigInt(0n, 1000n), fc.bigInt(0n, 50n), fc.integer({ min: 1, max: 300 }))
    .map(([each, request, completion, maxOutput]) => {
      const { contextLength: _, ...rest } = each;
      return { ...rest, prices: { prompt: 0n, request, completion }, tiers: [], maxOutput };
    });
  const demand = chatDemand({ model: 'model', messages: [{ role: 'user', content: '' }] }, 16_384, 1);
  fc.assert(
    fc.property(fc.array(priced, { minLength: 1, maxLength: 3 }), fc.bigInt(0n, 20_000n), (candidates, more) => {
      const callBounds = new CallBounds(candidates, () => demand);
      const bounds = candidates.flatMap((each) => boundOf(each, demand) ?? []);
      const left = leastOf(callBounds) + more;
      const at = (tokens: number) =>
        bounds
          .map((each) => each.fixed + each.perOutputToken * BigInt(Math.min(tokens, each.maxOutputTokens)))
          .reduce((a, b) => (a > b ? a : b));
      const most = Math.max(...bounds.map(({ maxOutputTokens }) => maxOutputTokens));
      const fitting = Array.from({ length: most }, (_, i) => i + 1).filter((tokens) => at(tokens) <= left);

      const tokens = fitting.at(-1) ?? 0;
      expect(callBounds.within(left)).toEqual({ amount: at(tokens), maxOutputTokens: tokens });
    }),
    { numRuns: 500 },
  );
});

it('a text has no more tokens than the bytes that are counted for it, form included', () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (said) => {
      const messages = said.map((content) => ({ role: 'user' as const, content }));
      const tokens = said.reduce((sum, each) => sum + countTokens(each) + 4, 3);

      expect(tokens).toBeLessThanOrEqual(chatDemand({ model: 'm', messages }, 16_384, 1).textTokens);
    }),
    { numRuns: 500 },
  );
});
