import { describe, expect, it } from 'vitest';
import { openAiAdapter } from '../../src/providers/openai/openai.ts';
import { apiKeyHash, createProviders, parseBaseUrl } from '../../src/providers/providers.ts';

const pepper = { id: 'p1', key: Buffer.from('pepper') };

const providers = createProviders({
  sandbox: { origin: 'http://127.0.0.1:4000', key: 'key-of-the-sandbox' },
  upstreams: [
    { name: 'ollama', baseUrl: 'http://127.0.0.1:11434/v1', apiKey: undefined, models: [], fields: [] },
    { name: 'acme', baseUrl: 'https://acme.example', apiKey: 'sk-acme', models: [], fields: [] },
  ],
  serviceProviders: [
    { id: 'openai', apiKey: 'sk-openai', baseUrl: 'http://127.0.0.1:9999/v1', fields: [] },
    { id: 'groq', apiKey: undefined, baseUrl: 'http://127.0.0.1:9998', fields: [] },
  ],
  pepper,
});
const NONE = { upstreams: [], serviceProviders: [], pepper };

describe('createProviders', () => {
  it('knows the sandbox and the upstreams of the environment, alike', () => {
    const common = { wire: 'openai', adapter: openAiAdapter, addresses: 'trusted', namedFields: new Set() };
    expect(providers.find('sandbox')).toEqual({
      ...common,
      id: 'sandbox',
      base: { origin: 'http://127.0.0.1:4000', path: '/v1' },
    });
    expect(providers.find('acme')).toEqual({
      ...common,
      id: 'acme',
      base: { origin: 'https://acme.example', path: '' },
    });
    expect(providers.find('__proto__')).toBeUndefined();
  });

  it("gives the service's credential, with a fingerprint where there is a secret", () => {
    expect(providers.serviceCredential('ollama')).toEqual({ source: 'service' });
    const apiKeyHash = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(providers.serviceCredential('acme')).toEqual({ source: 'service', secret: 'sk-acme', apiKeyHash });
    expect(providers.serviceCredential('openai')).toEqual({ source: 'service', secret: 'sk-openai', apiKeyHash });
  });

  it('has no credential for a provider of the catalogue without a key, and none for one that it does not know', () => {
    expect(['groq', 'mistral', '__proto__'].map((id) => providers.serviceCredential(id))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('calls a provider of the catalogue at the address that the environment names', () => {
    expect(providers.find('groq')).toMatchObject({
      id: 'groq',
      base: { origin: 'http://127.0.0.1:9998', path: '' },
      addresses: 'trusted',
    });
  });

  it('calls any other provider of the catalogue at its public address', () => {
    expect(providers.find('mistral')).toMatchObject({ base: { origin: 'https://api.mistral.ai', path: '/v1' } });
  });

  it('trusts no address of a custom provider, and no name of it', () => {
    const custom = {
      id: 'prov_1',
      name: 'openai',
      wire: 'openai',
      baseUrl: 'https://own.example/v1',
      keyless: false,
      fields: [],
    } as const;
    expect(providers.custom(custom)).toMatchObject({
      id: 'openai',
      base: { origin: 'https://own.example', path: '/v1' },
      addresses: 'public',
    });
  });

  it("fingerprints a customer's own key", () => {
    expect(providers.byok('pkey_1', 'Ours', 'sk-openai')).toEqual({
      ...providers.serviceCredential('openai'),
      source: 'byok',
      providerKeyId: 'pkey_1',
      providerKeyLabel: 'Ours',
    });
  });

  it('sends the sandbox its key, and shows no fingerprint of it', () => {
    expect(providers.serviceCredential('sandbox')).toEqual({ source: 'service', secret: 'key-of-the-sandbox' });
  });

  it('has no sandbox where it is off', () => {
    expect(createProviders(NONE).find('sandbox')).toBeUndefined();
  });
});

describe('apiKeyHash', () => {
  it('tells secrets apart, and peppers', () => {
    const other = { id: 'p2', key: Buffer.from('salt') };
    const hashes = [apiKeyHash('a', pepper), apiKeyHash('b', pepper), apiKeyHash('a', other)];
    expect(new Set(hashes).size).toBe(3);
    expect(apiKeyHash('a', pepper)).toBe(hashes[0]);
  });
});

describe('parseBaseUrl', () => {
  it.each([
    ['http://h:1/v1', { origin: 'http://h:1', path: '/v1' }],
    ['http://h:1/v1//', { origin: 'http://h:1', path: '/v1' }],
    ['https://h', { origin: 'https://h', path: '' }],
  ])('takes %s apart', (text, base) => expect(parseBaseUrl(text)).toEqual(base));
});
