import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSecret } from '../../../../src/domain/provider.ts';
import { encryptionKey, ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';
import { addCustomProvider, SECRET } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const record = {
  id: 'pkey_new',
  createdAt: START,
  updatedAt: START,
  label: 'Main',
  provider: 'openai',
  projectId: null,
  projectName: null,
  baseUrl: null,
  maskedToken: 'sk-t…tail',
  position: 1,
  status: 'active',
};

describe('POST /v1/master/provider-keys', () => {
  it('seals the secret and shows a mask of it alone', async () => {
    const body = { provider: 'openai', label: 'Main', token: SECRET };
    const answer = await server.request('POST', '/v1/master/provider-keys', { body });
    expect(await outcome(answer)).toEqual({
      status: 201,
      body: { providerKey: record, widens: expect.objectContaining({ count: expect.any(Number) }) },
    });
    expect(answer.text).not.toContain(SECRET);
    const { keys } = await server.store.organizationProviders(ID.organization);
    const [stored] = keys;
    expect(keys.length).toBe(1);
    expect(stored === undefined ? '' : openSecret(stored.secret, stored.id, encryptionKey)).toBe(SECRET);
  });

  it('stores everything that can be said, for a custom provider, before the keys that are there', async () => {
    await addCustomProvider(server, { name: 'acme' });
    const make = async (fields: object) => {
      const body = { provider: 'custom:acme', label: 'Acme', token: SECRET, ...fields };
      return (await server.request('POST', '/v1/master/provider-keys', { token: server.tokens.admin, body })).body;
    };
    expect(await make({})).toEqual({
      providerKey: { ...record, label: 'Acme', provider: 'custom:acme' },
      widens: { count: 0, cells: [] },
    });
    const all = {
      projectId: ID.project,
      baseUrl: 'http://127.0.0.1:4000/v1/',
      position: 1,
      status: 'inactive',
      token: 'short',
    };
    expect(await make(all)).toEqual({
      widens: { count: 0, cells: [] },
      providerKey: {
        ...record,
        label: 'Acme',
        provider: 'custom:acme',
        projectId: ID.project,
        projectName: 'Main',
        baseUrl: 'http://127.0.0.1:4000/v1',
        maskedToken: '…',
        position: 1,
        status: 'inactive',
      },
    });
    expect(await make({ label: 'Third' })).toEqual({
      widens: { count: 0, cells: [] },
      providerKey: { ...record, label: 'Third', provider: 'custom:acme', position: 3 },
    });
  });
});
