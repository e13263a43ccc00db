import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSecret } from '../../../../src/domain/provider.ts';
import { encryptionKey, ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';
import { addProviderKey, SECRET } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const PATH = '/v1/master/provider-keys';

/** Labels with positions, as a list has them. */
async function listed(query = '') {
  const { providerKeys } = JSON.parse((await server.request('GET', `${PATH}${query}`)).text);
  return providerKeys.map(({ label, position }: { label: string; position: number }) => `${label} ${position}`);
}

describe('provider keys', () => {
  it('are listed newest first, in pages, and by provider', async () => {
    const ids: string[] = [];
    for (const label of ['A', 'B', 'C']) ids.push(await addProviderKey(server, { label }));
    await addProviderKey(server, { provider: 'mistral', label: 'D' });
    expect(await listed()).toEqual(['D 1', 'C 3', 'B 2', 'A 1']);
    expect(await listed('?provider=openai')).toEqual(['C 3', 'B 2', 'A 1']);
    const first = JSON.parse((await server.request('GET', `${PATH}?limit=3`)).text);
    expect(await listed(`?limit=3&cursor=${first.nextCursor}`)).toEqual(['A 1']);
    const one = await server.request('GET', `${PATH}/${ids[0]}`);
    expect(await outcome(one)).toEqual({
      status: 200,
      body: {
        providerKey: {
          id: 'pkey_new',
          createdAt: START,
          updatedAt: START,
          label: 'A',
          provider: 'openai',
          projectId: null,
          projectName: null,
          baseUrl: null,
          maskedToken: 'sk-t…tail',
          position: 1,
          status: 'active',
        },
      },
    });
    expect(one.headers.get('cache-control')).toBe('no-store');
  });

  it('move among those of their provider, and close the gap of one that is deleted', async () => {
    const ids: string[] = [];
    for (const label of ['A', 'B', 'C']) ids.push(await addProviderKey(server, { label }));
    const move = (id: string | undefined, position: number) =>
      server.request('PATCH', `${PATH}/${id}`, { body: { position } });
    expect((await move(ids[2], 1)).body).toMatchObject({ providerKey: { label: 'C', position: 1 } });
    expect(await listed()).toEqual(['C 1', 'B 3', 'A 2']);
    await move(ids[2], 100);
    expect(await listed()).toEqual(['C 3', 'B 2', 'A 1']);
    const gone = await server.request('DELETE', `${PATH}/${ids[0]}`);
    expect({ status: gone.status, text: gone.text }).toEqual({
      status: 200,
      text: JSON.stringify({ id: ids[0], deleted: true, widens: { count: 0, cells: [] } }),
    });
    expect(await listed()).toEqual(['C 2', 'B 1']);
  });

  it('are sealed again with a new token, which may come with another base URL', async () => {
    const id = await addProviderKey(server);
    const token = 'sk-another-secret-9876543210-end';
    server.clock.set(Date.parse(START) + 1000);
    const body = { token, baseUrl: 'https://proxy.example/v1', label: 'Proxy', projectId: ID.project };
    expect((await server.request('PATCH', `${PATH}/${id}`, { body })).body).toEqual({
      widens: { count: 0, cells: [] },
      providerKey: {
        id: 'pkey_new',
        createdAt: START,
        updatedAt: '2026-01-31T12:00:01.000Z',
        label: 'Proxy',
        provider: 'openai',
        projectId: ID.project,
        projectName: 'Main',
        baseUrl: 'https://proxy.example/v1',
        maskedToken: 'sk-a…-end',
        position: 1,
        status: 'active',
      },
    });
    const { keys } = await server.store.organizationProviders(ID.organization);
    expect(keys.map((key) => openSecret(key.secret, key.id, encryptionKey))).toEqual([token]);
    const moved = { baseUrl: 'https://proxy.example/v2', projectId: null };
    expect((await server.request('PATCH', `${PATH}/${id}`, { body: moved })).body).toMatchObject({
      providerKey: moved,
    });
  });

  it('are used by no call while they are inactive, nor after their deletion, which forgets the secret', async () => {
    const id = await addProviderKey(server);
    const used = async () => (await server.store.organizationProviders(ID.organization)).keys.length;
    await server.request('PATCH', `${PATH}/${id}`, { body: { status: 'inactive' } });
    expect(await used()).toBe(0);
    await server.request('PATCH', `${PATH}/${id}`, { body: { status: 'active' } });
    expect(await used()).toBe(1);
    await server.request('DELETE', `${PATH}/${id}`);
    expect(await used()).toBe(0);
    const rows = await server.store.read((db) =>
      db.connection.prepare<[], unknown>('SELECT ciphertext, mask FROM provider_keys').all(),
    );
    expect(rows).toEqual([{ ciphertext: '', mask: '' }]);
    expect(JSON.stringify(rows)).not.toContain(SECRET);
  });
});
