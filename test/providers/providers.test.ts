import { describe, expect, it } from 'vitest';
import { openAiAdapter } from '../../src/providers/openai.ts';
import { apiKeyHash, createProviders, parseBaseUrl } from '../../src/providers/providers.ts';

const pepper = { id: 'p1', key: Buffer.from('pepper') };

const providers = createProviders({
  sandboxOrigin: 'http://127.0.0.1:4000',
  upstreams: [
    { name: 'ollama', baseUrl: 'http://127.0.0.1:11434/v1', apiKey: undefined, models: [] },
    { name: 'acme', baseUrl: 'https://acme.example', apiKey: 'sk-acme', models: [] },
  ],
  pepper,
});

describe('createProviders', () => {
  it('knows the sandbox and the upstreams of the environment, alike', () => {
    const common = { adapter: openAiAdapter, addresses: 'trusted' };
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
    expect(providers.credential('ollama', 'proj_1')).toEqual({ source: 'service' });
    const apiKeyHash = expect.stringMatching(/^[0-9a-f]{16}$/);
    expect(providers.credential('acme', 'proj_1')).toEqual({ source: 'service', secret: 'sk-acme', apiKeyHash });
    expect(providers.credential('openai', 'proj_1')).toBeUndefined();
  });

  it('says who has a credential', () => {
    const has = ['sandbox', 'ollama', 'acme', 'openai'].map((id) => providers.hasCredential(id, 'proj_1'));
    expect(has).toEqual([true, true, true, false]);
  });

  it('has no sandbox where it is off', () => {
    expect(createProviders({ upstreams: [], pepper }).find('sandbox')).toBeUndefined();
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
