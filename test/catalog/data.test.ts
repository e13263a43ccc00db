// What the committed data of the catalogue must hold to.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { readDataFile } from '../../src/catalog/catalog-file.ts';
import { KNOWN_PROVIDERS, PROVIDER_IDS, RESERVED_NAMES } from '../../src/config/upstreams.ts';
import { isFree } from '../../src/domain/model.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { validator } from '../../src/lib/schemas.ts';

const validateProviderList = validator('ProviderList');

const FOLDER = new URL('../../src/catalog/data/', import.meta.url);
const clock = new ManualClock('2026-11-21T00:00:00Z');
const catalog = createCatalog({ sandbox: true, upstreams: [], clock });
const files = [...PROVIDER_IDS, 'sandbox'].map((name) => ({ name, data: readDataFile(name) }));
const entries = files.flatMap(({ data }) => data.models);

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const repeated = (values: readonly string[]): string[] => values.filter((value, at) => values.indexOf(value) < at);

describe('the data files', () => {
  it('are those that the program reads, and the two that are written by hand', () => {
    const written = ['models.json', 'overlay.json'];
    const read = [...PROVIDER_IDS, 'sandbox'].map((name) => `${name}.json`);
    expect(readdirSync(FOLDER).sort()).toEqual([...read, ...written].sort());
  });

  it('are dated, and the catalogue by the youngest', () => {
    const dates = files.map(({ data }) => data.date);
    expect(dates.filter((date) => !DATE.test(date))).toEqual([]);
    expect(catalog.date).toBe(dates.toSorted().at(-1));
  });

  it.each(files)('$name holds mappings of that provider alone', ({ name, data }) => {
    const mappings = data.models.flatMap((model) => model.mappings);
    expect(mappings.length).toBeGreaterThan(0);
    expect(new Set(mappings.map(({ providerId }) => providerId))).toEqual(new Set([name]));
  });

  it('say the same of a model wherever it stands', () => {
    const differing = entries.filter((model) => {
      const { mappings: _, ...first } = entries.find(({ id }) => id === model.id) ?? model;
      const { mappings: __, tokenizer, ...said } = model;
      return JSON.stringify({ ...first, tokenizer: undefined }) !== JSON.stringify({ ...said, tokenizer: undefined });
    });
    expect(differing).toEqual([]);
  });

  it('name no file of this machine and no registry', () => {
    for (const name of readdirSync(FOLDER)) {
      expect(readFileSync(new URL(name, FOLDER), 'utf8')).not.toMatch(/npmjs|registry\.|node_modules|file:|\/work\//);
    }
  });
});

describe('names', () => {
  it('of models are of the id alphabet and hold no slash', () => {
    const bare = catalog.models().flatMap(({ id, aliases }) => [id, ...aliases]);
    expect(bare.filter((name) => !/^[A-Za-z0-9._:@-]{1,512}$/.test(name))).toEqual([]);
  });

  it('of the providers’ own are of the id alphabet', () => {
    const external = catalog.mappings().map(({ externalId }) => externalId);
    expect(external.filter((name) => !/^[A-Za-z0-9._:@/-]{1,512}$/.test(name))).toEqual([]);
  });

  it('mean one model each', () => {
    expect(repeated(catalog.models().flatMap(({ id, aliases }) => [id, ...aliases]))).toEqual([]);
  });

  it('behind a provider mean one mapping each', () => {
    const pinned = catalog.mappings().flatMap(({ names }) => names.filter((name) => name.includes('/')));
    expect(repeated(pinned)).toEqual([]);
  });

  it('of mappings are unique', () => {
    expect(repeated(catalog.mappings().map(({ id }) => id))).toEqual([]);
  });

  it('each lead to the mappings of their model that are active', () => {
    for (const model of catalog.models()) {
      const active = model.mappings.filter(({ deactivatedAt = '9' }) => deactivatedAt > '2026-11-21T00:00:00Z');
      for (const name of [model.id, ...model.aliases]) expect(catalog.resolve(name)).toEqual(active);
    }
  });
});

describe('mappings', () => {
  it('have a price of input and of output, in whole pico-dollars', () => {
    const unpriced = catalog
      .mappings()
      .filter(({ prices }) => prices.prompt === undefined || prices.completion === undefined);
    expect(unpriced.map(({ id }) => id)).toEqual([]);
  });

  it('cost nothing only where that is meant', () => {
    expect(
      catalog
        .mappings()
        .filter(isFree)
        .map(({ id }) => id),
    ).toEqual([
      'google/gemma-4-26b-a4b-it',
      'google/gemma-4-31b-it',
      'openai/omni-moderation-latest',
      'sandbox/sandbox-free',
      ...catalog
        .mappings()
        .filter(({ id, freeFlag }) => freeFlag && /^sandbox\/.*moderation/.test(id))
        .map(({ id }) => id),
    ]);
  });

  it('say how long an answer can be, or how much the model reads and writes: a capped key can call them (issue 12, 1)', () => {
    const writing = catalog.mappings().filter(({ outputModalities }) => outputModalities.includes('text'));
    expect(
      writing.filter(({ contextLength, maxOutput }) => contextLength === undefined && maxOutput === undefined),
    ).toEqual([]);
  });

  it('charge in each tier for all that they charge for without', () => {
    for (const { prices, tiers = [] } of catalog.mappings()) {
      for (const tier of tiers) expect(Object.keys(tier.prices).sort()).toEqual(Object.keys(prices).sort());
    }
  });

  it('never write to the cache for less than the input price, nor for an hour for less than for five minutes', () => {
    for (const { prices } of catalog.mappings()) {
      const { prompt = 0n, input_cache_write: short, input_cache_write_1h: long } = prices;
      if (short !== undefined) expect(short).toBeGreaterThanOrEqual(prompt);
      if (long !== undefined) expect(long).toBeGreaterThan(short ?? prompt);
    }
  });

  it('are deprecated before they are deactivated', () => {
    const ending = catalog.mappings().filter(({ deactivatedAt }) => deactivatedAt !== undefined);
    const wrong = ending.filter(({ deprecatedAt = '9', deactivatedAt = '' }) => deprecatedAt > deactivatedAt);
    expect(wrong.map(({ id }) => id)).toEqual([]);
  });

  it('have a context that holds their output', () => {
    const wrong = catalog
      .mappings()
      .filter(({ contextLength = Number.POSITIVE_INFINITY, maxOutput = 0 }) => maxOutput > contextLength);
    expect(wrong.map(({ id }) => id)).toEqual([]);
  });
});

describe('popular models', () => {
  it.each([
    ['gpt-5', ['openai', 'openrouter']],
    ['claude-opus-5-5', ['anthropic', 'openrouter']],
    ['gemini-3.1-pro-preview', ['google', 'openrouter']],
    ['gpt-oss-120b', ['cerebras', 'fireworks', 'groq', 'openrouter', 'together']],
    ['llama-3.3-70b-instruct', ['openrouter', 'together']],
    ['deepseek-v4-pro', ['deepseek', 'openrouter']],
    ['kimi-k3', ['fireworks', 'moonshotai', 'openrouter']],
    ['grok-4.3', ['openrouter', 'xai']],
    ['mistral-large-2512', ['mistral', 'openrouter']],
    ['minimax-m3', ['fireworks', 'openrouter']],
  ])('%s is served by several providers', (model, providers) => {
    const served = catalog.resolve(model)?.map(({ providerId }) => providerId);
    expect(served).toEqual(expect.arrayContaining(providers));
  });

  it('are a good part of the catalogue’s active ones of the great makers', () => {
    const makers = ['anthropic', 'openai', 'google', 'meta', 'deepseek', 'moonshotai'];
    const active = catalog
      .models()
      .filter(({ id, family }) => makers.includes(family) && catalog.resolve(id)?.length !== 0);
    const several = active.filter(({ id }) => (catalog.resolve(id)?.length ?? 0) > 1);
    expect(several.length).toBeGreaterThan(active.length / 3);
  });
});

describe('providers', () => {
  it('cannot be taken by an upstream of the environment', () => {
    expect([...RESERVED_NAMES].sort()).toEqual(['custom', ...catalog.providers().map(({ id }) => id)].sort());
  });

  it('say where every fact about them is from', () => {
    for (const { cancellation, trainsOnData, region, retention, sources = [] } of KNOWN_PROVIDERS) {
      const stated = Object.entries({ cancellation, region, retention, trainsOnData }).filter(
        ([, fact]) => fact !== undefined,
      );
      expect(sources.map(({ field }) => field).sort()).toEqual(stated.map(([field]) => field));
    }
  });

  it.each([
    ['a provider without an address', { baseUrl: undefined }],
    ['an address without TLS', { baseUrl: 'http://models.example/v1' }],
    ['an id that no variable can have', { id: 'two-words' }],
    ['a wire format that nobody speaks', { wire: 'grpc' }],
    ['a shape that is none', { dialect: { cannot: [], extensions: { seed: 'number' } } }],
    ['a field that the list does not know', { price: '0' }],
  ])('are not %s', (_name, change) => {
    const [first] = KNOWN_PROVIDERS;
    const list = { date: '2026-11-21', otherServers: { cannot: [], extensions: {} } };
    expect(validateProviderList({ ...list, providers: [first] })).toBe(true);
    expect(validateProviderList({ ...list, providers: [{ ...first, ...change }] })).toBe(false);
  });
});
