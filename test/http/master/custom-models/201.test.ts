import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';
import { addCustomProvider } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const UNKNOWN = {
  prompt: null,
  completion: null,
  request: null,
  image: null,
  input_cache_read: null,
  input_cache_write: null,
  input_cache_write_1h: null,
  internal_reasoning: null,
  input_audio: null,
  input_audio_cache_read: null,
  output_audio: null,
  input_image: null,
  output_image: null,
  per_image: null,
  web_search: null,
};

const record = {
  id: 'model_new',
  createdAt: START,
  updatedAt: START,
  customProviderId: 'prov_new',
  pricing: UNKNOWN,
  inputPricePerMillion: null,
  outputPricePerMillion: null,
  contextLength: null,
  maxOutput: null,
  streaming: true,
  vision: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: false,
  jsonOutput: false,
  structuredOutputs: false,
  inputModalities: ['text'],
  outputModalities: ['text'],
  supportedParameters: null,
  status: 'active',
};

describe('POST /v1/master/custom-models', () => {
  it('adds a model that claims to complete text and no more, or whatever is said', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'acme' });
    const make = (fields: object) =>
      outcome(server.request('POST', '/v1/master/custom-models', { body: { customProviderId, ...fields } }));
    expect(await make({ model: 'org/model-7b' })).toEqual({
      status: 201,
      body: {
        customModel: { ...record, model: 'org/model-7b', name: 'acme/org/model-7b', displayName: 'org/model-7b' },
        widens: expect.objectContaining({ count: expect.any(Number) }),
      },
    });
    const said = {
      model: 'everything',
      displayName: 'All of it',
      contextLength: 128_000,
      maxOutput: 4096,
      streaming: false,
      tools: true,
      parallelToolCalls: true,
      reasoning: true,
      jsonOutput: true,
      structuredOutputs: true,
      outputModalities: ['text', 'image', 'text'],
      supportedParameters: ['temperature', 'seed'],
      status: 'inactive',
    };
    const pricing = {
      prompt: '0.000002500000',
      completion: '0',
      per_image: '0.04',
      request: null,
      web_search: '9000000',
    };
    expect(await make({ ...said, vision: true, pricing })).toEqual({
      status: 201,
      body: {
        widens: expect.objectContaining({ count: expect.any(Number) }),
        customModel: {
          ...record,
          ...said,
          name: 'acme/everything',
          vision: true,
          inputModalities: ['text', 'image'],
          outputModalities: ['text', 'image'],
          pricing: { ...UNKNOWN, prompt: '0.0000025', completion: '0', per_image: '0.04', web_search: '9000000' },
          inputPricePerMillion: '2.5',
          outputPricePerMillion: '0',
        },
      },
    });
    const { mappings } = await server.store.organizationProviders(ID.organization);
    expect(mappings.map(({ id, names, providerNames }) => ({ id, names, providerNames }))).toEqual([
      { id: 'acme/org/model-7b', names: ['acme/org/model-7b'], providerNames: ['custom', 'custom:acme'] },
    ]);
  });

  it('takes the prices of tokens in the unit of rules too (issue 12, 15)', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'per-million' });
    const body = { customProviderId, model: 'm', inputPricePerMillion: '2.5', outputPricePerMillion: '10' };
    const made = await server.request('POST', '/v1/master/custom-models', { body });

    expect(JSON.parse(made.text).customModel).toMatchObject({
      pricing: { prompt: '0.0000025', completion: '0.00001' },
      inputPricePerMillion: '2.5',
      outputPricePerMillion: '10',
    });
  });

  it('is known to rules at once, and its provider too', async () => {
    await addCustomProvider(server, { name: 'ruled' });
    const add = async (ruleType: string, ruleValue: object) =>
      (await server.request('POST', '/v1/master/organization/iam', { body: { ruleType, ruleValue } })).body;
    expect(await add('deny_models', { models: ['acme/org/model-7b', 'acme/org/*', 'ruled/*'] })).toMatchObject({
      warnings: ['No name of a model in the catalogue begins with "ruled/".'],
    });
    expect(await add('deny_providers', { providers: ['custom:ruled', 'ruled'] })).toMatchObject({
      warnings: ['"ruled" is not a provider in the catalogue; did you mean `custom:ruled`?'],
    });
  });
});
