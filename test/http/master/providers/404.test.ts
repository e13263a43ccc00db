import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
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

const missing = (what: string) => ({ status: 404, body: refused('not_found', `There is no such ${what}.`) });

describe("what is not the organization's own", () => {
  it('is not found: of another organization, deleted, or not there', async () => {
    const { foreigner } = server.tokens;
    const customProviderId = await addCustomProvider(server, { name: 'theirs' }, foreigner);
    const deleted = await addCustomProvider(server, { name: 'gone' });
    const model = await addCustomModel(server, { customProviderId: deleted });
    const key = await addProviderKey(server, { provider: 'custom:gone' });
    const tags = await addTagSet(server, { target: 'gone/*' });
    const alias = await addAlias(server);
    await server.request('DELETE', `/v1/master/aliases/${alias}`);
    await server.request('DELETE', `/v1/master/custom-providers/${deleted}`);
    const cases: [string, string, string[], object][] = [
      ['provider-keys', 'provider key', [await addProviderKey(server, {}, foreigner), key], { label: 'x' }],
      ['custom-providers', 'custom provider', [customProviderId, deleted], { keyless: true }],
      [
        'custom-models',
        'custom model',
        [await addCustomModel(server, { customProviderId }, foreigner), model],
        { tools: true },
      ],
      ['tag-sets', 'tag set', [await addTagSet(server, {}, foreigner), tags], { tags: ['x'] }],
      ['aliases', 'alias', [await addAlias(server, {}, foreigner), alias], { models: ['sandbox-paid'] }],
    ];
    for (const [resource, what, ids, body] of cases) {
      for (const id of [...ids, ID.absent, '__proto__', 'a%2F%00']) {
        const target = `/v1/master/${resource}/${id}`;
        expect(await outcome(server.request('GET', target))).toEqual(missing(what));
        expect(await outcome(server.request('PATCH', target, { body }))).toEqual(missing(what));
        expect(await outcome(server.request('DELETE', target))).toEqual(missing(what));
      }
      const list = JSON.parse((await server.request('GET', `/v1/master/${resource}`)).text);
      expect(Object.values(list)[0]).toEqual([]);
    }
  });

  it('takes no models, no keys and no aliases', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'foreign' }, server.tokens.foreigner);
    const model = { customProviderId, model: 'm' };
    expect(await outcome(server.request('POST', '/v1/master/custom-models', { body: model }))).toEqual(
      missing('custom provider'),
    );
    const key = { provider: 'custom:foreign', label: 'x', token: SECRET };
    expect(await outcome(server.request('POST', '/v1/master/provider-keys', { body: key }))).toEqual({
      status: 400,
      body: refused('invalid_request', '"custom:foreign" is not a custom provider of the organization.', '/provider'),
    });
    const inProject = { provider: 'openai', label: 'x', token: SECRET, projectId: ID.otherProject };
    expect(await outcome(server.request('POST', '/v1/master/provider-keys', { body: inProject }))).toEqual(
      missing('project'),
    );
    const alias = { name: 'fast', models: ['sandbox-free'], projectId: ID.otherProject };
    expect(await outcome(server.request('POST', '/v1/master/aliases', { body: alias }))).toEqual(missing('project'));
  });
});
