import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
let path: string;

beforeAll(async () => {
  server = await startManagementServer();
  const made = await server.request('POST', '/v1/master/groups', { body: { name: 'team' } });
  path = `/v1/master/groups/${JSON.parse(made.text).group.id}`;
});
afterAll(() => server.close());

it.each([
  ['GET', undefined],
  ['PATCH', { description: 'Changed' }],
  ['DELETE', undefined],
])('%s of a group that is not there', async (method, body) => {
  const absent = `/v1/master/groups/grp_${'9'.repeat(32)}`;
  expect(await outcome(server.request(method, absent, { body }))).toEqual({
    status: 404,
    body: refused('not_found', 'There is no such group.'),
  });
});

it.each([
  [{ addMembers: [ID.developer, ID.foreigner] }, '/addMembers/1', 'There is no such member.'],
  [{ removeMembers: ['nobody@example.com'] }, '/removeMembers/0', 'There is no such member.'],
  [{ addKeys: [ID.foreignKey] }, '/addKeys/0', 'There is no such key.'],
  [{ removeKeys: [ID.absent] }, '/removeKeys/0', 'There is no such key.'],
])('someone who is not there: %j', async (body, pointer, message) => {
  expect(await outcome(server.request('PATCH', path, { body }))).toEqual({
    status: 404,
    body: refused('not_found', `${pointer}: ${message}`, pointer),
  });
});
