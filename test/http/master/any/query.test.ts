// A misspelt query parameter is refused on every route of the master API: ignored, it would show everything (issue 12, 17).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nameOf, tenantRoutes } from '../../../tenancy/routes.ts';
import { outcome, refused, startManagementServer } from '../management-server.ts';

const server = await startManagementServer();
afterAll(() => server.close());

let audited: number;
const auditEntries = () =>
  server.store.read(
    ({ connection }) => connection.prepare<[], number>('SELECT count(*) FROM audit').pluck().get() ?? 0,
  );
beforeAll(async () => {
  audited = await auditEntries();
});

const routes = tenantRoutes(server.app).map((route) => [nameOf(route), route] as const);

describe.each(routes)('%s', (_, { method, path }) => {
  it('refuses a query parameter that it does not take, and changes nothing', async () => {
    const answer = await server.request(method, `${path.replaceAll(':', '')}?porjectId=proj_1`);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('The query parameter porjectId is not known: this request takes ');
    expect(await auditEntries()).toBe(audited);
  });
});

it('says which there are', async () => {
  expect(await outcome(server.request('GET', '/v1/master/keys?porjectId=proj_1'))).toEqual({
    status: 400,
    body: refused(
      'invalid_request',
      'The query parameter porjectId is not known: this request takes limit, cursor, projectId, kind.',
      '/porjectId',
    ),
  });
  expect(await outcome(server.request('DELETE', '/v1/master/keys/key_1?force=true'))).toEqual({
    status: 400,
    body: refused('invalid_request', 'The query parameter force is not known: this request takes none.', '/force'),
  });
});

it('tells nobody without a master key', async () => {
  expect((await server.request('GET', '/v1/master/keys?porjectId=proj_1', { token: null })).status).toBe(401);
});

it('takes those of its description', async () => {
  expect((await server.request('GET', '/v1/master/keys?limit=1&kind=playground')).status).toBe(200);
  expect((await server.request('GET', '/v1/master/audit?action=key.create&limit=1')).status).toBe(200);
});
