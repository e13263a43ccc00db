import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it.each([
  ['POST', '/v1/master/projects', { name: 'Mine' }],
  ['PATCH', `/v1/master/projects/${ID.project}`, { name: 'Mine' }],
  ['DELETE', `/v1/master/projects/${ID.project}`, undefined],
])('%s %s is not for developers', async (method, path, body) => {
  const token = server.tokens.developer;
  expect(await outcome(server.request(method, path, { token, body }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});
