import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addProviderKey, SECRET } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/provider-keys';
const valid = { provider: 'openai', label: 'Main', token: SECRET };
const TOKEN = '/token must be 1 to 4096 visible ASCII characters without blanks.';

describe('POST /v1/master/provider-keys is refused for', () => {
  it.each<[object, string, string]>([
    [{ provider: undefined }, '/provider', '/provider is missing.'],
    [{ label: undefined }, '/label', '/label is missing.'],
    [{ token: undefined }, '/token', '/token is missing.'],
    [{ label: '' }, '/label', '/label ("") must be a text of 1 to 256 characters.'],
    [{ status: 'off' }, '/status', '/status ("off") must be one of active, inactive.'],
    [{ position: 0 }, '/position', '/position (0) must be a whole number from 1 to 100.'],
    [
      { provider: 'nobody' },
      '/provider',
      '"nobody" is not a provider of the catalogue; a custom provider is written "custom:<name>".',
    ],
    [{ provider: 'custom:acme' }, '/provider', '"custom:acme" is not a custom provider of the organization.'],
    [
      { baseUrl: 'https://models.example?key=1' },
      '/baseUrl',
      'A base URL must be an http or https URL without user, query and fragment.',
    ],
    [
      { baseUrl: 'http://169.254.169.254/v1' },
      '/baseUrl',
      'The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names 169.254.169.254:80.',
    ],
    [{ createdAt: 'now' }, '/createdAt', '/createdAt is not a known field.'],
  ])('%j', async (fields, param, message) => {
    const answer = await server.request('POST', PATH, { body: { ...valid, ...fields } });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it.each([
    [{ token: `${SECRET} ` }, TOKEN],
    [
      { token: `${SECRET}\r\nx-evil: 1` },
      '/token holds U+000D: control characters and characters that cannot be seen are not allowed.',
    ],
    [
      { token: `${SECRET}\u202e` },
      '/token holds U+202E: control characters and characters that cannot be seen are not allowed.',
    ],
    [{ token: `${SECRET}é` }, TOKEN],
    [{ token: [SECRET] }, TOKEN],
    [{ apiKey: SECRET }, '/apiKey is not a known field.'],
    [{ baseUrl: [SECRET] }, '/baseUrl must be of type string or null.'],
  ])('a secret in the wrong form or place, which the answer does not repeat: %j', async (fields, message) => {
    const answer = await server.request('POST', PATH, { body: { ...valid, ...fields } });
    expect(answer.body).toMatchObject({ error: { message } });
    expect(answer.text).not.toContain(SECRET);
  });

  it('the 101st of an organization', async () => {
    const make = () => server.request('POST', PATH, { body: valid });
    for (let count = 0; count < 100; count++) await make();
    expect(await outcome(make())).toEqual({
      status: 400,
      body: refused('invalid_request', 'An organization has at most 100 provider keys.'),
    });
  });
});

describe('PATCH /v1/master/provider-keys/{id} is refused for', () => {
  let id: string;
  beforeAll(async () => {
    await server.close();
    server = await startManagementServer();
    id = await addProviderKey(server, { baseUrl: 'https://one.example/v1' });
  });

  const ELSEWHERE = 'A base URL on another server needs the token again: a stored secret is not sent there.';

  it.each<[object, string, string]>([
    [{}, '', 'The request body must hold at least one field.'],
    [
      { provider: 'mistral' },
      '/provider',
      '/provider ("mistral") cannot be changed: a key belongs to the provider for which it was made.',
    ],
    [{ position: 1.5 }, '/position', '/position (1.5) must be a whole number from 1 to 100.'],
    [{ baseUrl: 'https://two.example/v1' }, '/token', ELSEWHERE],
    [{ baseUrl: 'http://one.example/v1' }, '/token', ELSEWHERE],
    [{ baseUrl: null }, '/token', ELSEWHERE],
  ])('%j', async (body, param, message) => {
    const answer = await server.request('PATCH', `${PATH}/${id}`, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });
});
