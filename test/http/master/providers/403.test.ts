import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import {
  addAlias,
  addCustomModel,
  addCustomProvider,
  addProviderKey,
  addTagSet,
  SECRET,
} from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const denied = { status: 403, body: refused('permission_denied', 'Developers can only manage their own keys.') };

describe("a developer's master key", () => {
  it('neither sees nor changes provider keys, custom providers, custom models and tags', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'acme' });
    const made: [string, string, object, object][] = [
      [
        'provider-keys',
        await addProviderKey(server),
        { provider: 'openai', label: 'x', token: SECRET },
        { label: 'x' },
      ],
      ['custom-providers', customProviderId, { name: 'other', baseUrl: 'https://a.example' }, { keyless: true }],
      [
        'custom-models',
        await addCustomModel(server, { customProviderId }),
        { customProviderId, model: 'm' },
        { tools: true },
      ],
      ['tag-sets', await addTagSet(server), { target: 'sandbox-paid', tags: ['x'] }, { tags: ['x'] }],
    ];
    const token = server.tokens.developer;
    for (const [resource, id, created, changed] of made) {
      const path = `/v1/master/${resource}`;
      expect(await outcome(server.request('GET', path, { token }))).toEqual(denied);
      expect(await outcome(server.request('POST', path, { token, body: created }))).toEqual(denied);
      expect(await outcome(server.request('GET', `${path}/${id}`, { token }))).toEqual(denied);
      expect(await outcome(server.request('PATCH', `${path}/${id}`, { token, body: changed }))).toEqual(denied);
      expect(await outcome(server.request('DELETE', `${path}/${id}`, { token }))).toEqual(denied);
      expect((await server.request('GET', `${path}/${id}`, { token: server.tokens.admin })).status).toBe(200);
    }
  });

  it('sees aliases, which its requests may name, and changes none', async () => {
    const id = await addAlias(server, {}, server.tokens.admin);
    const token = server.tokens.developer;
    const path = '/v1/master/aliases';
    const body = { name: 'other', models: ['sandbox-free'] };
    expect((await server.request('GET', path, { token })).body).toMatchObject({ aliases: [{ id, name: 'fast' }] });
    expect((await server.request('GET', `${path}/${id}`, { token })).body).toMatchObject({ alias: { id } });
    expect(await outcome(server.request('POST', path, { token, body }))).toEqual(denied);
    const change = { body: { models: ['sandbox-paid'] }, token };
    expect(await outcome(server.request('PATCH', `${path}/${id}`, change))).toEqual(denied);
    expect(await outcome(server.request('DELETE', `${path}/${id}`, { token }))).toEqual(denied);
  });
});
