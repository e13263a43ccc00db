import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it('GET /v1/master/audit is not for developers', async () => {
  expect(await outcome(server.request('GET', '/v1/master/audit', { token: server.tokens.developer }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});

it('the audit log takes no writes', async () => {
  for (const method of ['POST', 'PATCH', 'DELETE']) {
    expect((await server.request(method, '/v1/master/audit')).status).toBe(405);
  }
});
