import { describe, expect, it } from 'vitest';
import { catalogOf, createCatalog } from '../../src/catalog/catalog.ts';
import { catalogData } from '../../src/catalog/catalog-file.ts';
import { PROVIDER_IDS, type UpstreamConfig } from '../../src/config/upstreams.ts';
import { ManualClock } from '../../src/domain/time.ts';

const clock = new ManualClock('2026-11-21T00:00:00Z');

const upstream = (name: string, ...ids: string[]): UpstreamConfig => ({
  fields: [],
  name,
  baseUrl: 'http://127.0.0.1:1/v1',
  apiKey: undefined,
  models: ids.map((id) => ({ id, prices: {} })),
});

const idsOf = (mappings: readonly { id: string }[] | undefined): string[] | undefined => mappings?.map(({ id }) => id);

describe('createCatalog', () => {
  it('knows the sandbox: one free model, one paid, one slow, one that fails', () => {
    const catalog = createCatalog({ sandbox: true, upstreams: [], clock });
    expect(idsOf(catalog.models())).toEqual(
      expect.arrayContaining(['sandbox-faulty', 'sandbox-free', 'sandbox-paid', 'sandbox-slow']),
    );
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
        region: 'us',
        tags: ['no_training', 'region:us', 'retention:none', 'stability:stable'],
      },
    ]);
  });

  it('knows nothing of the sandbox where it is off', () => {
    const { models, mappings, providers } = createCatalog({ sandbox: false, upstreams: [], clock });
    expect(providers().map(({ id }) => id)).toEqual([...PROVIDER_IDS].sort());
    expect([...models(), ...mappings(), ...providers()].filter(({ id }) => id.includes('sandbox'))).toEqual([]);
  });

  it('knows nothing of a provider that the operator calls at another address but its name', () => {
    const at = (baseUrl: string | undefined) => {
      const serviceProviders = [{ id: 'mistral', apiKey: 'x', baseUrl, fields: [] }];
      const catalog = createCatalog({ sandbox: false, upstreams: [], serviceProviders, clock });
      const mapping = catalog.mappings().find(({ providerId }) => providerId === 'mistral');
      return [mapping?.tags, mapping?.region, catalog.providers().find(({ id }) => id === 'mistral')];
    };
    const provider = { id: 'mistral', name: 'Mistral AI' };
    expect(at(undefined)).toEqual([
      ['region:eu', 'retention:30d', 'stability:stable'],
      'eu',
      { ...provider, region: 'eu', retention: '30d' },
    ]);
    expect(at('https://us.mistral.example/v1')).toEqual([['stability:stable'], undefined, provider]);
  });

  it('adds an upstream to a model of the catalogue, under every name of that model', () => {
    const catalog = createCatalog({ sandbox: false, upstreams: [upstream('vllm', 'kimi-k2-0905')], clock });
    const mapping = catalog.mappings().find(({ id }) => id === 'vllm/kimi-k2-0905');
    expect(mapping?.names).toEqual([
      'kimi-k2-0905',
      'kimi-k2-0905-preview',
      'kimi-k2-instruct-0905',
      'vllm/kimi-k2-0905',
      'vllm/kimi-k2-0905-preview',
      'vllm/kimi-k2-instruct-0905',
    ]);
    expect(catalog.resolve('vllm/kimi-k2-instruct-0905')).toEqual([mapping]);
    expect(idsOf(catalog.resolve('kimi-k2-0905-preview'))).toContain('vllm/kimi-k2-0905');
    expect(catalog.models().find(({ id }) => id === 'kimi-k2-0905')?.name).toBe('Kimi K2 0905');
  });

  it('also knows a model by the id of its provider, behind that provider', () => {
    const catalog = createCatalog({ sandbox: false, upstreams: [], clock });
    expect(idsOf(catalog.resolve('openrouter/anthropic/claude-opus-4.5'))).toEqual(['openrouter/claude-opus-4-5']);
    expect(catalog.resolve('anthropic/claude-opus-4.5')?.map(({ providerId }) => providerId)).toEqual(['anthropic']);
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
    const mapping = catalog.mappings().find(({ providerId }) => providerId === 'vllm');
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
    const ofUpstream = catalog.mappings().filter(({ providerId }) => providerId === 'vllm');
    expect(ofUpstream.map((mapping) => mapping.prices)).toEqual([prices, {}]);
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

const data = (...models: object[]) => catalogData({ date: '2026-01-01', providers: [], models });

const file = (more: object) => ({ date: '2026-01-01', providers: [], models: [modelEntry('m', [], more)] });

describe('catalogOf', () => {
  it('is of the day of its youngest part', () => {
    const dates = ['2026-01-02', '2026-01-03', '2026-01-01'];
    expect(
      catalogOf(
        dates.map((date) => catalogData({ date })),
        clock,
      ).date,
    ).toBe('2026-01-03');
  });

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

describe('catalogData', () => {
  it('reads every field that a mapping may state', () => {
    const stated = {
      prices: { prompt: '0.000001', completion: '0', input_audio_cache_read: '0.0000002' },
      tiers: [{ abovePromptTokens: 200_000, prices: { prompt: '0.000002', completion: '0.000001' } }],
      minCacheableTokens: 1024,
      reasoningEfforts: ['none', 'max'],
      supportedParameters: ['stop'],
      cancellation: false,
      capabilities: ['realtime', 'parallelToolCalls'],
      inputModalities: ['text', 'file'],
      outputModalities: ['moderation'],
      region: 'eu',
      free: true,
      stability: 'beta',
      deprecatedAt: '2026-01-01T00:00:00Z',
      deactivatedAt: '2026-02-01T00:00:00Z',
    };
    expect(catalogData(file(stated)).models[0]?.mappings[0]).toEqual({
      id: 'p/m',
      providerId: 'p',
      modelId: 'm',
      externalId: 'x',
      region: 'eu',
      custom: false,
      names: ['m', 'p/m', 'p/x'],
      providerNames: ['p'],
      prices: { prompt: 1_000_000n, completion: 0n, input_audio_cache_read: 200_000n },
      tiers: [{ abovePromptTokens: 200_000, prices: { prompt: 2_000_000n, completion: 1_000_000n } }],
      freeFlag: true,
      minCacheableTokens: 1024,
      reasoningEfforts: ['none', 'max'],
      supportedParameters: ['stop'],
      cancellation: false,
      realtime: true,
      inputModalities: ['text', 'file'],
      outputModalities: ['moderation'],
      streaming: false,
      vision: false,
      tools: false,
      parallelToolCalls: true,
      reasoning: false,
      jsonOutput: false,
      structuredOutputs: false,
      stability: 'beta',
      deprecatedAt: '2026-01-01T00:00:00Z',
      deactivatedAt: '2026-02-01T00:00:00Z',
      tags: ['region:eu', 'stability:beta'],
    });
  });

  it('gives a mapping the facts of its provider, but for the region that it states itself', () => {
    const providers = [{ id: 'p', name: 'P', trainsOnData: false, region: 'us', retention: '30d' }];
    const tagsOf = (more: object) => catalogData({ ...file(more), providers }).models[0]?.mappings[0]?.tags;
    const others = ['retention:30d', 'stability:stable'];
    expect(tagsOf({})).toEqual(['no_training', 'region:us', ...others]);
    expect(tagsOf({ region: 'eu' })).toEqual(['no_training', 'region:eu', ...others]);
  });

  it.each([{}, { trainsOnData: true }])('makes no tag of what is not known of a provider, or not good: %j', (facts) => {
    const { models } = catalogData({ ...file({}), providers: [{ id: 'p', name: 'P', ...facts }] });
    expect(models[0]?.mappings[0]).toMatchObject({ tags: ['stability:stable'] });
    expect(models[0]?.mappings[0]).not.toHaveProperty('region');
  });

  it.each([
    ['a missing text', { externalId: undefined }, '/models/0/mappings/0/externalId'],
    ['an unknown stability', { stability: 'good' }, '/models/0/mappings/0/stability'],
    ['a fraction where a count belongs', { maxOutput: 1.5 }, '/models/0/mappings/0/maxOutput'],
    ['a price that is a number', { prices: { prompt: 1 } }, '/models/0/mappings/0/prices/prompt'],
    ['a list that is none', { capabilities: 'tools' }, '/models/0/mappings/0/capabilities'],
    ['an unknown capability', { capabilities: ['flying'] }, '/models/0/mappings/0/capabilities'],
    ['an unknown modality', { inputModalities: ['smell'] }, '/models/0/mappings/0/inputModalities'],
    ['an unknown effort', { reasoningEfforts: ['enormous'] }, '/models/0/mappings/0/reasoningEfforts'],
    ['an unknown price', { prices: { prmpt: '1' } }, '/models/0/mappings/0/prices/prmpt'],
    ['a price with too many decimals', { prices: { prompt: '0.0000000000001' } }, '/models/0/mappings/0/prices/prompt'],
    ['a date that is none', { deactivatedAt: '2026-13-01T00:00:00Z' }, '/models/0/mappings/0/deactivatedAt'],
    ['a date without its zone', { deprecatedAt: '2026-01-01' }, '/models/0/mappings/0/deprecatedAt'],
    [
      'tiers that do not rise',
      {
        tiers: [
          { abovePromptTokens: 2, prices: {} },
          { abovePromptTokens: 2, prices: {} },
        ],
      },
      '/models/0/mappings/0/tiers/1/abovePromptTokens',
    ],
  ])('names the place of %s', (_name, more, place) => {
    expect(() => catalogData(file(more))).toThrow(`catalogue data: wrong value at ${place}`);
  });

  it('reads what is not stated as not known', () => {
    const [model] = catalogData(file({})).models;
    expect(Object.keys(model?.mappings[0] ?? {})).not.toContain('maxOutput');
    expect(model?.mappings[0]?.prices).toEqual({});
  });
});
