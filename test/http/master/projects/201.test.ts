import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it('POST /v1/master/projects makes one with the cache that is wanted, by owners and admins', async () => {
  const made = (body: object, token: string) => outcome(server.request('POST', '/v1/master/projects', { body, token }));
  const project = {
    id: 'proj_new',
    createdAt: START,
    updatedAt: START,
    name: 'Second',
    requestsPerMinute: null,
    tokensPerMinute: null,
  };

  expect(await made({ name: 'Second' }, server.tokens.admin)).toEqual({
    status: 201,
    body: { project: { ...project, cachingEnabled: true, cacheDurationSeconds: 60 } },
  });
  expect(
    await made({ name: 'Second', cachingEnabled: false, cacheDurationSeconds: 3600 }, server.tokens.owner),
  ).toEqual({
    status: 201,
    body: { project: { ...project, cachingEnabled: false, cacheDurationSeconds: 3600 } },
  });
});

it('with the limits a minute that are wanted', async () => {
  const body = { name: 'Limited', requestsPerMinute: 60, tokensPerMinute: 100_000 };

  expect((await server.request('POST', '/v1/master/projects', { body })).body).toMatchObject({ project: body });
});

it('with a playground key for every member', async () => {
  const made = await server.request('POST', '/v1/master/projects', { body: { name: 'Third' } });
  const { id } = JSON.parse(made.text).project;
  const { body } = await server.request('GET', `/v1/master/keys?kind=playground&projectId=${id}`);
  const { keys } = Object(body);
  expect(
    keys.map(({ createdBy, kind, maskedToken }: Record<string, unknown>) => [createdBy, kind, maskedToken]),
  ).toEqual([ID.developer, ID.admin, ID.owner].map((member) => [member, 'playground', null]));
});
