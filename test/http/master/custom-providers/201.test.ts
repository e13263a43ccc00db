import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/custom-providers';
const record = { id: 'prov_new', createdAt: START, updatedAt: START, wire: 'openai', keyless: false, fields: [] };

describe('POST /v1/master/custom-providers', () => {
  it("adds a provider that speaks OpenAI's API and asks for a key, unless it is said otherwise", async () => {
    const body = { name: 'acme', baseUrl: 'https://Models.Example/v1/' };
    expect(await outcome(server.request('POST', PATH, { body }))).toEqual({
      status: 201,
      body: {
        customProvider: { ...record, name: 'acme', baseUrl: 'https://models.example/v1' },
        widens: { count: 0, cells: [] },
      },
    });
    const all = {
      name: 'acme-two',
      baseUrl: 'http://127.0.0.1:4000',
      wire: 'anthropic',
      keyless: true,
      fields: ['x_trace'],
    };
    expect(await outcome(server.request('POST', PATH, { token: server.tokens.admin, body: all }))).toEqual({
      status: 201,
      body: { customProvider: { ...record, ...all }, widens: { count: 0, cells: [] } },
    });
  });

  it('leaves a name to each organization, and again to one that has deleted its provider', async () => {
    const body = { name: 'shared', baseUrl: 'https://models.example' };
    const make = (token: string) => server.request('POST', PATH, { token, body });
    const { owner, foreigner } = server.tokens;
    const made = await make(owner);
    expect([made.status, (await make(foreigner)).status, (await make(owner)).status]).toEqual([201, 201, 400]);
    await server.request('DELETE', `${PATH}/${JSON.parse(made.text).customProvider.id}`);
    expect((await make(owner)).status).toBe(201);
  });
});
