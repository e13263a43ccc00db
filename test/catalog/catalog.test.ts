import { describe, expect, it } from 'vitest';
import { catalogOf, createCatalog } from '../../src/catalog/catalog.ts';
import { decodeCatalogData } from '../../src/catalog/decode.ts';
import { ManualClock } from '../../src/domain/time.ts';
import type { UpstreamConfig } from '../../src/domain/upstream-config.ts';

const clock = new ManualClock('2026-11-21T00:00:00Z');

const upstream = (name: string, ...ids: string[]): UpstreamConfig => ({
  name,
  baseUrl: 'http://127.0.0.1:1/v1',
  apiKey: undefined,
  models: ids.map((id) => ({ id, prices: {} })),
});

const idsOf = (mappings: readonly { id: string }[] | undefined): string[] | undefined => mappings?.map(({ id }) => id);

describe('createCatalog', () => {
  it('knows the sandbox: one free model, one paid, one slow, one that fails', () => {
    const catalog = createCatalog({ sandbox: true, upstreams: [], clock });
    expect(idsOf(catalog.models())).toEqual(['sandbox-faulty', 'sandbox-free', 'sandbox-paid', 'sandbox-slow']);
    expect(catalog.resolve('sandbox-paid')).toEqual([
      {
        id: 'sandbox/sandbox-paid',
        providerId: 'sandbox',
        modelId: 'sandbox-paid',
        externalId: 'sandbox-paid',
        custom: false,
        names: ['sandbox-paid', 'sandbox/sandbox-paid'],
        providerNames: ['sandbox'],
        prices: { prompt: 1_000_000n, completion: 4_000_000n },
        freeFlag: false,
        contextLength: 128_000,
        maxOutput: 4096,
        inputModalities: ['text', 'image'],
        outputModalities: ['text'],
        streaming: true,
        vision: true,
        tools: true,
        parallelToolCalls: false,
        reasoning: false,
        jsonOutput: true,
        structuredOutputs: true,
        supportedParameters: [
          'max_completion_tokens',
          'max_tokens',
          'n',
          'response_format',
          'stop',
          'stream',
          'tool_choice',
          'tools',
        ],
        stability: 'stable',
      },
    ]);
    expect(catalog.date).toBe('2026-11-21');
  });

  it('is empty where there is nothing', () => {
    const catalog = createCatalog({ sandbox: false, upstreams: [], clock });
    expect([catalog.models(), catalog.mappings(), catalog.providers()]).toEqual([[], [], []]);
  });

  it('finds a model by its id, and at one provider only behind the name of that provider', () => {
    const upstreams = [upstream('vllm', 'llama'), upstream('ollama', 'llama')];
    const catalog = createCatalog({ sandbox: true, upstreams, clock });
    expect(idsOf(catalog.resolve('llama'))).toEqual(['ollama/llama', 'vllm/llama']);
    expect(idsOf(catalog.resolve('vllm/llama'))).toEqual(['vllm/llama']);
    expect(idsOf(catalog.resolve('sandbox/sandbox-free'))).toEqual(['sandbox/sandbox-free']);
  });

  it('serves an upstream id with a slash behind its provider alone, and gives it a canonical id without', () => {
    const catalog = createCatalog({ sandbox: false, upstreams: [upstream('vllm', 'meta/llama/3')], clock });
    const [mapping] = catalog.mappings();
    expect(mapping).toMatchObject({
      id: 'vllm/meta--llama--3',
      modelId: 'meta--llama--3',
      externalId: 'meta/llama/3',
      names: ['meta--llama--3', 'vllm/meta--llama--3', 'vllm/meta/llama/3'],
    });
    expect(catalog.resolve('vllm/meta/llama/3')).toEqual([mapping]);
    expect(catalog.resolve('meta--llama--3')).toEqual([mapping]);
    expect(catalog.resolve('meta/llama/3')).toBeUndefined();
  });

  it.each([
    '',
    '/',
    'llama',
    'LLAMA',
    'sandbox',
    'sandbox/',
    '/sandbox-free',
    'sandbox-free/',
    'vllm/sandbox-free',
    '__proto__',
  ])('does not know %j', (name) => {
    const catalog = createCatalog({ sandbox: true, upstreams: [upstream('vllm', 'qwen')], clock });
    expect(catalog.resolve(name)).toBeUndefined();
  });

  it('takes the prices of an upstream as they are stated, and none as unknown', () => {
    const prices = { prompt: 1n, completion: 2n };
    const models = [
      { id: 'a', prices },
      { id: 'b', prices: {} },
    ];
    const catalog = createCatalog({ sandbox: false, upstreams: [{ ...upstream('vllm'), models }], clock });
    expect(catalog.mappings().map((mapping) => mapping.prices)).toEqual([prices, {}]);
  });

  it('has a digest that changes with what it holds, and with nothing else', () => {
    const digest = (...models: string[]): string =>
      createCatalog({ sandbox: true, upstreams: [upstream('vllm', ...models)], clock }).digest;
    expect(digest('a')).toMatch(/^[0-9a-f]{64}$/);
    expect(digest('a')).toBe(digest('a'));
    expect(digest('a')).not.toBe(digest('b'));
  });
});

const mapping = {
  externalId: 'x',
  prices: {},
  inputModalities: [],
  outputModalities: [],
  capabilities: [],
  stability: 'stable',
};

const modelEntry = (id: string, aliases: string[], ...mappings: object[]) => ({
  id,
  name: id,
  aliases,
  description: '',
  family: 'f',
  created: '2026-01-01T00:00:00Z',
  mappings: mappings.map((more) => ({ ...mapping, providerId: 'p', ...more })),
});

const data = (...models: object[]) => decodeCatalogData({ date: '2026-01-01', providers: [], models });

const file = (more: object) => ({ date: '2026-01-01', providers: [], models: [modelEntry('m', [], more)] });

describe('catalogOf', () => {
  it('resolves an alias, bare and behind each provider, and lets a canonical id win over it', () => {
    const parts = [
      data(modelEntry('m', ['latest', 'n'], { providerId: 'p' }, { providerId: 'q' }), modelEntry('n', [], {})),
    ];
    const catalog = catalogOf(parts, clock);
    expect(idsOf(catalog.resolve('latest'))).toEqual(['p/m', 'q/m']);
    expect(idsOf(catalog.resolve('q/latest'))).toEqual(['q/m']);
    expect(idsOf(catalog.resolve('n'))).toEqual(['p/n']);
    expect(idsOf(catalog.resolve('p/n'))).toEqual(['p/n']);
    expect(idsOf(catalog.resolve('q/n'))).toEqual(['q/m']);
  });

  it('resolves to active mappings only, from the clock, to the very instant', () => {
    const later = new ManualClock('2026-05-31T23:59:59.999Z');
    const gone = { providerId: 'q', deactivatedAt: '2026-06-01T00:00:00Z' };
    const catalog = catalogOf([data(modelEntry('m', [], {}, gone))], later);
    expect(idsOf(catalog.resolve('m'))).toEqual(['p/m', 'q/m']);
    later.advance(1);
    expect(idsOf(catalog.resolve('m'))).toEqual(['p/m']);
    expect(idsOf(catalog.resolve('q/m'))).toEqual([]);
    expect(idsOf(catalog.mappings())).toEqual(['p/m', 'q/m']);
  });

  it('merges what several parts say of one model', () => {
    const parts = [
      data(modelEntry('m', ['a'], { providerId: 'q' })),
      data({ ...modelEntry('m', ['b'], {}), name: 'M' }),
    ];
    const [model, ...others] = catalogOf(parts, clock).models();
    expect(others).toEqual([]);
    expect(model).toMatchObject({ name: 'M', aliases: ['a', 'b'], mappings: [{ id: 'p/m' }, { id: 'q/m' }] });
  });
});

describe('decodeCatalogData', () => {
  it.each([
    ['a missing text', { externalId: undefined }, '/models/0/mappings/0/externalId'],
    ['an unknown stability', { stability: 'good' }, '/models/0/mappings/0/stability'],
    ['a fraction where a count belongs', { maxOutput: 1.5 }, '/models/0/mappings/0/maxOutput'],
    ['a price that is a number', { prices: { prompt: 1 } }, '/models/0/mappings/0/prices/prompt'],
    ['a list that is none', { capabilities: 'tools' }, '/models/0/mappings/0/capabilities'],
  ])('names the place of %s', (_name, more, place) => {
    expect(() => decodeCatalogData(file(more))).toThrow(`catalogue data: wrong value at ${place}`);
  });

  it('reads what is not stated as not known', () => {
    const [model] = decodeCatalogData(file({})).models;
    expect(Object.keys(model?.mappings[0] ?? {})).not.toContain('maxOutput');
    expect(model?.mappings[0]?.prices).toEqual({});
  });
});
