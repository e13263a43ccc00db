import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';
import { addCustomModel, addCustomProvider, addProviderKey } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/custom-providers';

describe('custom providers', () => {
  it('are listed newest first, shown, changed and deleted with their models and keys', async () => {
    const first = await addCustomProvider(server, { name: 'first' });
    const second = await addCustomProvider(server, { name: 'second' });
    const record = {
      id: 'prov_new',
      createdAt: START,
      updatedAt: START,
      name: 'first',
      wire: 'openai',
      baseUrl: 'https://models.example/v1',
      keyless: false,
      fields: [],
    };
    expect(await outcome(server.request('GET', PATH))).toEqual({
      status: 200,
      body: { customProviders: [{ ...record, name: 'second' }, record], nextCursor: null },
    });
    expect(await outcome(server.request('GET', `${PATH}/${first}`))).toEqual({
      status: 200,
      body: { customProvider: record },
    });
    await addProviderKey(server, { provider: 'custom:first' });
    await addCustomModel(server, { customProviderId: first });
    await addCustomModel(server, { customProviderId: second });
    const kept = { wire: 'google', baseUrl: 'https://models.example/v2', keyless: true, fields: ['x_trace'] };
    expect(await outcome(server.request('PATCH', `${PATH}/${first}`, { body: kept }))).toEqual({
      status: 200,
      body: { customProvider: { ...record, ...kept }, widens: { count: 0, cells: [] } },
    });
    expect((await server.request('DELETE', `${PATH}/${first}`)).text).toBe(
      JSON.stringify({ id: first, deleted: true, widens: { count: 0, cells: [] } }),
    );
    const left = await server.store.organizationProviders(ID.organization);
    expect([left.providers, left.mappings, left.keys].map((each) => each.length)).toEqual([1, 1, 0]);
  });

  it('move to another server while no secret would be sent there', async () => {
    const id = await addCustomProvider(server, { name: 'moving' });
    const move = (baseUrl: string) => server.request('PATCH', `${PATH}/${id}`, { body: { baseUrl } });
    expect((await move('https://two.example')).status).toBe(200);
    await addProviderKey(server, { provider: 'custom:moving', baseUrl: 'https://own.example' });
    expect((await move('https://three.example')).status).toBe(200);
    const key = await addProviderKey(server, { provider: 'custom:moving' });
    expect((await move('https://four.example')).status).toBe(400);
    expect((await move('https://three.example/v1')).status).toBe(200);
    await server.request('DELETE', `/v1/master/provider-keys/${key}`);
    expect((await move('https://four.example')).status).toBe(200);
  });
});
