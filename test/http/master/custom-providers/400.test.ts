import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addCustomProvider, addProviderKey } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/custom-providers';
const NAME = 'must be words of small letters joined by single hyphens, at most 63 characters.';

describe('POST /v1/master/custom-providers is refused for', () => {
  it.each<[object, string, string]>([
    [{ name: undefined }, '/name', '/name is missing.'],
    [{ baseUrl: undefined }, '/baseUrl', '/baseUrl is missing.'],
    [
      { fields: ['x_trace', 'a b'] },
      '/fields/1',
      '/fields/1 ("a b") must be the name of a JSON field: at most 64 letters, digits and `_`.',
    ],
    [
      { fields: ['x_trace', 'models'] },
      '/fields/1',
      '`models` can choose another model, a longer answer or a higher price. It cannot be let through.',
    ],
    ...['Acme', 'a--b', '-a', 'a-', 'a1', 'a/b', ''].map((name): [object, string, string] => [
      { name },
      '/name',
      `/name (${JSON.stringify(name)}) ${NAME}`,
    ]),
    [
      { name: 'a\nb' },
      '/name',
      '/name holds U+000A: control characters and characters that cannot be seen are not allowed.',
    ],
    ...['openai', 'anthropic', 'sandbox', 'custom'].map((name): [object, string, string] => [
      { name },
      '/name',
      `The provider name "${name}" is taken.`,
    ]),
    [{ wire: 'soap' }, '/wire', '/wire ("soap") must be one of openai, anthropic, google.'],
    [{ keyless: 'yes' }, '/keyless', '/keyless ("yes") must be of type boolean.'],
    [{ apiKey: 'x' }, '/apiKey', '/apiKey ("x") is not a known field.'],
    [
      { baseUrl: 'https://user:password@models.example' },
      '/baseUrl',
      'A base URL must be an http or https URL without user, query and fragment.',
    ],
    [
      { baseUrl: 'http://127.0.0.1:4001' },
      '/baseUrl',
      'The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names 127.0.0.1:4001.',
    ],
  ])('%j', async (fields, param, message) => {
    const body = { name: 'acme', baseUrl: 'https://models.example', ...fields };
    const answer = await server.request('POST', PATH, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it('the 51st of an organization', async () => {
    for (let count = 0; count < 50; count++) {
      await addCustomProvider(server, { name: `p-${'a'.repeat(count + 1)}` });
    }
    const body = { name: 'acme', baseUrl: 'https://models.example' };
    expect(await outcome(server.request('POST', PATH, { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', 'An organization has at most 50 custom providers.'),
    });
  });
});

describe('PATCH /v1/master/custom-providers/{id} is refused for', () => {
  let id: string;
  beforeAll(async () => {
    await server.close();
    server = await startManagementServer();
    id = await addCustomProvider(server, { name: 'acme' });
    await addProviderKey(server, { provider: 'custom:acme', status: 'inactive' });
  });

  it.each<[object, string, string]>([
    [{}, '', 'The request body must hold at least one field.'],
    [
      { fields: ['fallbacks'] },
      '/fields/0',
      '`fallbacks` can choose another model, a longer answer or a higher price. It cannot be let through.',
    ],
    [{ name: 'new' }, '/name', '/name ("new") cannot be changed: requests and rules mean the provider by it.'],
    [
      { baseUrl: 'https://elsewhere.example' },
      '/baseUrl',
      'The provider has keys, and a stored secret is not sent to another server: delete them, or give them a base URL of their own.',
    ],
  ])('%j', async (body, param, message) => {
    const answer = await server.request('PATCH', `${PATH}/${id}`, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });
});
