import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countProviderKeys } from '../../../../src/store/providers/provider-key-records.ts';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addProviderKey } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const times = { createdAt: START, updatedAt: START };
const main = {
  id: ID.project,
  ...times,
  name: 'Main',
  cachingEnabled: true,
  cacheDurationSeconds: 60,
  requestsPerMinute: null,
  tokensPerMinute: null,
};
const NEW = '/v1/master/projects';

const make = async (name: string): Promise<string> =>
  JSON.parse((await server.request('POST', NEW, { body: { name } })).text).project.id;

describe('GET /v1/master/projects', () => {
  it("lists the organization's projects, and shows one, for every role", async () => {
    for (const token of [server.tokens.owner, server.tokens.developer]) {
      expect(await outcome(server.request('GET', NEW, { token }))).toEqual({
        status: 200,
        body: { projects: [main], nextCursor: null },
      });
      expect(await outcome(server.request('GET', `${NEW}/${ID.project}`, { token }))).toEqual({
        status: 200,
        body: { project: main },
      });
    }
  });
});

describe('PATCH /v1/master/projects/{id}', () => {
  it('changes what is named, and nothing else', async () => {
    const id = await make('Second');
    server.clock.advance(1000);
    const change = async (body: object) => (await server.request('PATCH', `${NEW}/${id}`, { body })).body;
    const project = { ...main, id: 'proj_new', name: 'Second', updatedAt: '2026-01-31T12:00:01.000Z' };

    expect(await change({ cachingEnabled: false })).toEqual({ project: { ...project, cachingEnabled: false } });
    expect(await change({ cacheDurationSeconds: 10, name: 'Renamed' })).toEqual({
      project: { ...project, name: 'Renamed', cachingEnabled: false, cacheDurationSeconds: 10 },
    });
    expect(await change({ cacheDurationSeconds: 31_536_000, cachingEnabled: true })).toEqual({
      project: { ...project, name: 'Renamed', cacheDurationSeconds: 31_536_000 },
    });
  });
});

describe('DELETE /v1/master/projects/{id}', () => {
  it('deletes it with its keys, and with the provider keys that are for it alone', async () => {
    const id = await make('Doomed');
    const made = await server.request('POST', '/v1/master/keys', { body: { projectId: id } });
    const { key } = JSON.parse(made.text);
    await addProviderKey(server, { label: 'Of the project', projectId: id });
    const forAll = await addProviderKey(server, { label: 'Of all' });

    expect(await outcome(server.request('DELETE', `${NEW}/${id}`))).toEqual({
      status: 200,
      body: { id: 'proj_new', deleted: true },
    });

    const gone = { status: 404, body: refused('not_found', 'There is no such project.') };
    expect(await outcome(server.request('GET', `${NEW}/${id}`))).toEqual(gone);
    expect(await outcome(server.request('DELETE', `${NEW}/${id}`))).toEqual(gone);
    expect((await server.request('GET', `/v1/master/keys/${key.id}`)).status).toBe(404);
    const left = JSON.parse((await server.request('GET', '/v1/master/provider-keys')).text).providerKeys;
    expect(left.map((each: { id: string; position: number }) => [each.id, each.position])).toEqual([[forAll, 1]]);
    const secrets = await server.store.read(({ connection }) =>
      connection.prepare<[string], string>('SELECT ciphertext FROM provider_keys WHERE projectId = ?').pluck().all(id),
    );
    expect([secrets, await server.store.read((db) => countProviderKeys(db, ID.organization))]).toEqual([[''], 1]);
  });
});
