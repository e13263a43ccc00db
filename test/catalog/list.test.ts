import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { CatalogModel } from '../../src/catalog/catalog-file.ts';
import { type ModelListOptions, modelList } from '../../src/catalog/model-list.ts';
import type { Mapping } from '../../src/domain/model.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { CatalogProvider } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';

const validateModelList = validator('ModelList');

const NOW = Date.parse('2026-06-01T00:00:00Z');
const ALL: ModelListOptions = { includeDeactivated: false, excludeDeprecated: false, noTraining: false, mapped: false };

const mapping = (providerId: string, more: Partial<Mapping> = {}): Mapping => ({
  id: `${providerId}/m`,
  providerId,
  modelId: 'm',
  externalId: `m-at-${providerId}`,
  custom: false,
  names: ['m', 'm-latest', `${providerId}/m`, `${providerId}/m-latest`],
  providerNames: [providerId],
  prices: {},
  freeFlag: false,
  inputModalities: ['text'],
  outputModalities: ['text'],
  streaming: true,
  vision: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: false,
  jsonOutput: false,
  structuredOutputs: false,
  stability: 'stable',
  tags: [],
  ...more,
});

const model = (...mappings: Mapping[]): CatalogModel => ({
  id: 'm',
  name: 'Model M',
  aliases: ['m-latest'],
  description: 'A model.',
  family: 'maker',
  created: 1_790_000_000,
  mappings,
});

const PROVIDERS: CatalogProvider[] = [
  { id: 'a', name: 'Provider A', trainsOnData: false },
  { id: 'b', name: 'Provider B', trainsOnData: true },
  { id: 'c', name: 'Provider C' },
];

const list = (models: CatalogModel[], options: Partial<ModelListOptions> = {}, now = NOW) =>
  modelList(models, PROVIDERS, { ...ALL, ...options }, now).data;

const RICH = model(
  mapping('a', {
    prices: { prompt: 3_000_000n, completion: 15_000_000n },
    contextLength: 100_000,
    maxOutput: 4096,
    supportedParameters: ['tools', 'stop'],
    stability: 'beta',
  }),
  mapping('b', {
    prices: {
      prompt: 2_500_000n,
      completion: 10_000_000n,
      input_cache_read: 250_000n,
      request: 0n,
      web_search: 10_000_000_000n,
      internal_reasoning: 1n,
      input_audio_cache_read: 100_000n,
      per_image: 40_000_000_000n,
    },
    contextLength: 200_000,
    maxOutput: 8192,
    inputModalities: ['text', 'image'],
    vision: true,
    reasoning: true,
    reasoningEfforts: ['low', 'high', 'enormous'],
    cancellation: false,
    realtime: true,
    minCacheableTokens: 1024,
    tiers: [{ abovePromptTokens: 100_000, prices: { prompt: 5_000_000n, completion: 20_000_000n } }],
    jsonOutput: true,
    supportedParameters: ['tools', 'seed'],
  }),
);

const ENTRY_A = {
  providerId: 'a',
  externalId: 'm-at-a',
  pricing: { prompt: '0.000003', completion: '0.000015' },
  streaming: true,
  vision: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: false,
  max_output: 4096,
  stability: 'beta',
};

const PRICING_B = {
  prompt: '0.0000025',
  completion: '0.00001',
  input_audio_cache_read: '0.0000001',
  input_cache_read: '0.00000025',
  request: '0',
  per_image: { default: '0.04' },
};

const TIERS_B = [{ above_prompt_tokens: 100_000, prompt: '0.000005', completion: '0.00002' }];

const ENTRY_B = {
  providerId: 'b',
  externalId: 'm-at-b',
  pricing: PRICING_B,
  pricing_tiers: TIERS_B,
  streaming: true,
  vision: true,
  realtime: true,
  cancellation: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: true,
  reasoning_efforts: ['low', 'high'],
  min_cacheable_tokens: 1024,
  max_output: 8192,
  stability: 'stable',
};

const MODEL_PRICING_B = { ...PRICING_B, web_search: '0.01', internal_reasoning: '0.000000000001' };

describe('modelList', () => {
  it('aggregates: cheapest price, largest context, smallest output, every flag that any mapping has', () => {
    expect(list([RICH])).toEqual([
      {
        id: 'm',
        object: 'model',
        owned_by: 'maker',
        name: 'Model M',
        display_name: 'Model M',
        aliases: ['m-latest'],
        created: 1_790_000_000,
        description: 'A model.',
        family: 'maker',
        architecture: { input_modalities: ['text', 'image'], output_modalities: ['text'] },
        providers: [ENTRY_A, ENTRY_B],
        pricing: MODEL_PRICING_B,
        pricing_tiers: TIERS_B,
        context_length: 200_000,
        max_output: 4096,
        supported_parameters: ['tools', 'stop', 'seed'],
        json_output: true,
        structured_outputs: false,
        free: false,
        stability: 'stable',
      },
    ]);
  });

  it('gives one entry per mapping, each with its own figures, where `mapped` is asked for', () => {
    const [a, b] = list([RICH], { mapped: true });
    expect(a).toEqual({
      id: 'a/m',
      object: 'model',
      owned_by: 'maker',
      name: 'Model M (Provider A)',
      display_name: 'Model M (Provider A)',
      aliases: ['a/m-latest'],
      created: 1_790_000_000,
      description: 'A model.',
      family: 'maker',
      architecture: { input_modalities: ['text'], output_modalities: ['text'] },
      providers: [ENTRY_A],
      pricing: ENTRY_A.pricing,
      context_length: 100_000,
      max_output: 4096,
      supported_parameters: ['tools', 'stop'],
      json_output: false,
      structured_outputs: false,
      free: false,
      stability: 'beta',
    });
    expect(b).toMatchObject({ id: 'b/m', providers: [ENTRY_B], pricing: MODEL_PRICING_B, max_output: 8192 });
  });

  it('leaves what is not known out, and holds no null', () => {
    const [bare] = list([model(mapping('a'))]);
    expect(bare).toEqual({
      id: 'm',
      object: 'model',
      owned_by: 'maker',
      name: 'Model M',
      display_name: 'Model M',
      aliases: ['m-latest'],
      created: 1_790_000_000,
      description: 'A model.',
      family: 'maker',
      architecture: { input_modalities: ['text'], output_modalities: ['text'] },
      providers: [expect.not.objectContaining({ max_output: undefined })],
      pricing: {},
      json_output: false,
      structured_outputs: false,
      free: false,
      stability: 'stable',
    });
    expect(Object.values(bare ?? {})).not.toContain(undefined);
  });

  it('says what images and long prompts cost, of a mapping too, and keeps the tiers outside of `pricing`', () => {
    const charged = mapping('a', {
      prices: { prompt: 1_000_000n, input_image: 2_000_000n, output_image: 3_000_000n },
      tiers: [{ abovePromptTokens: 200_000, prices: { prompt: 4_000_000n, output_image: 6_000_000n } }],
    });
    const pricing = {
      prompt: '0.000001',
      input_image: '0.000002',
      output_image: '0.000003',
    };
    const tiers = [{ above_prompt_tokens: 200_000, prompt: '0.000004', output_image: '0.000006' }];

    const [entry] = list([model(charged)]);
    expect([entry?.pricing, entry?.pricing_tiers]).toEqual([pricing, tiers]);
    expect(entry?.providers).toEqual([expect.objectContaining({ pricing, pricing_tiers: tiers })]);
  });

  it('takes an unknown price for the highest', () => {
    const known = mapping('b', { prices: { prompt: 9n, completion: 9n } });
    expect(list([model(mapping('a'), known)])[0]?.pricing).toEqual({
      prompt: '0.000000000009',
      completion: '0.000000000009',
    });
  });

  it('is free when any active mapping is', () => {
    const free = mapping('a', { prices: { prompt: 0n, completion: 0n } });
    const paid = mapping('b', { prices: { prompt: 1n, completion: 1n } });
    expect(list([model(free, paid)])[0]?.free).toBe(true);
    expect(list([model(paid)])[0]?.free).toBe(false);
  });

  it('drops a model when all of its mappings are deactivated, from that very instant', () => {
    const models = [
      model(
        mapping('a', { deactivatedAt: '2026-06-01T00:00:00Z' }),
        mapping('b', { deactivatedAt: '2026-05-01T00:00:00Z' }),
      ),
    ];
    expect(list(models)).toEqual([]);
    expect(list(models, {}, NOW - 1)).toHaveLength(1);
    const [kept] = list(models, { includeDeactivated: true });
    expect(kept).toMatchObject({
      deactivated_at: '2026-06-01T00:00:00Z',
      providers: [{ providerId: 'a' }, { providerId: 'b' }],
    });
  });

  it('counts and shows only active mappings of a model that has some', () => {
    const gone = mapping('a', {
      deactivatedAt: '2026-05-01T00:00:00Z',
      prices: { prompt: 1n, completion: 1n },
      vision: true,
    });
    const active = mapping('b', { prices: { prompt: 2n, completion: 2n } });
    const [shown] = list([model(gone, active)]);
    expect(shown?.providers.map(({ providerId }) => providerId)).toEqual(['b']);
    expect(shown?.pricing.prompt).toBe('0.000000000002');
    expect(Object.keys(shown ?? {})).not.toContain('deactivated_at');
    expect(list([model(gone, active)], { mapped: true }).map(({ id }) => id)).toEqual(['b/m']);
    expect(list([model(gone, active)], { includeDeactivated: true })[0]?.providers).toHaveLength(2);
  });

  it('drops deprecated models, or mappings, where that is asked for', () => {
    const old = mapping('a', { deprecatedAt: '2026-01-01T00:00:00Z' });
    const young = mapping('b', { deprecatedAt: '2027-01-01T00:00:00Z' });
    expect(list([model(old)])[0]?.deprecated_at).toBe('2026-01-01T00:00:00Z');
    expect(list([model(old)], { excludeDeprecated: true })).toEqual([]);
    expect(list([model(old, young)], { excludeDeprecated: true })[0]?.deprecated_at).toBe('2027-01-01T00:00:00Z');
    expect(list([model(old, young)], { excludeDeprecated: true, mapped: true }).map(({ id }) => id)).toEqual(['b/m']);
  });

  it('keeps of `no_training` only providers that are known not to train', () => {
    const models = [model(mapping('a'), mapping('b'), mapping('c'), mapping('custom'))];
    expect(list(models, { noTraining: true })[0]?.providers.map(({ providerId }) => providerId)).toEqual(['a']);
    expect(list(models, { noTraining: true, mapped: true }).map(({ id }) => id)).toEqual(['a/m']);
    expect(list([model(mapping('b'))], { noTraining: true })).toEqual([]);
  });

  it('leaves a model out that has no mapping', () => {
    expect(list([model()])).toEqual([]);
  });

  it.each([true, false])('is what its schema says, mapped: %s', (mapped) => {
    const { models, providers } = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
    const answer: unknown = modelList([...models(), RICH], providers(), { ...ALL, mapped }, NOW);
    validateModelList(answer);
    expect(validateModelList.errors ?? []).toEqual([]);
  });
});
