import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, startManagementServer } from '../management-server.ts';
import { addCustomModel, addCustomProvider, addTagSet } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/tag-sets';

const targets = async (query = ''): Promise<unknown> => {
  const { tagSets, nextCursor } = JSON.parse((await server.request('GET', `${PATH}${query}`)).text);
  return [tagSets.map(({ target }: { target: string }) => target), nextCursor];
};

describe('tags of an organization', () => {
  it('are listed newest first, in pages, change as a whole, and are gone when they are deleted', async () => {
    const ids: string[] = [];
    for (const target of ['sandbox-free', 'sandbox/sandbox-free', 'sandbox/*']) {
      ids.push(await addTagSet(server, { target }));
    }
    expect(await targets()).toEqual([['sandbox/*', 'sandbox/sandbox-free', 'sandbox-free'], null]);
    const { nextCursor } = JSON.parse((await server.request('GET', `${PATH}?limit=2`)).text);
    expect(await targets(`?limit=2&cursor=${nextCursor}`)).toEqual([['sandbox-free'], null]);

    const changed = await server.request('PATCH', `${PATH}/${ids[0]}`, { body: { tags: ['b', 'a:1', 'b'] } });
    const one = await server.request('GET', `${PATH}/${ids[0]}`);
    expect([changed.status, { ...Object(one.body), widens: { count: 0, cells: [] } }]).toEqual([200, changed.body]);
    expect(one.body).toMatchObject({ tagSet: { target: 'sandbox-free', tags: ['a:1', 'b'] } });

    for (const id of ids) {
      const deleted = JSON.parse((await server.request('DELETE', `${PATH}/${id}`)).text);
      expect(deleted).toEqual({ id, deleted: true, widens: { count: 0, cells: [] } });
    }
    expect(await targets()).toEqual([[], null]);
  });

  it('go with the custom model or provider on which they stand, so that the next of its name has none', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'acme' });
    const model = await addCustomModel(server, { customProviderId, model: 'org/own' });
    await addCustomModel(server, { customProviderId, model: 'other' });
    for (const target of ['acme/*', 'acme/org/own', 'acme/other', 'sandbox/*']) await addTagSet(server, { target });
    await server.request('DELETE', `/v1/master/custom-models/${model}`);
    expect(await targets()).toEqual([['sandbox/*', 'acme/other', 'acme/*'], null]);
    await server.request('DELETE', `/v1/master/custom-providers/${customProviderId}`);
    expect(await targets()).toEqual([['sandbox/*'], null]);
  });
});
