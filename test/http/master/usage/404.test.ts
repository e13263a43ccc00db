import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it.each([
  [`projectId=${ID.otherProject}`, 'There is no such project.'],
  [`keyId=${ID.foreignKey}`, 'There is no such key.'],
  [`memberId=${ID.foreigner}`, 'There is no such member.'],
])('of what belongs to another organization: %s', async (query, message) => {
  expect(await outcome(server.request('GET', `/v1/master/usage?${query}`))).toEqual({
    status: 404,
    body: refused('not_found', message),
  });
});
