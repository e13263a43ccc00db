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
  ['GET', '', undefined],
  ['POST', '', { name: 'mine' }],
  ['GET', 'one', undefined],
  ['PATCH', 'one', { addKeys: [ID.developerKey] }],
  ['DELETE', 'one', undefined],
  ['GET', 'one/iam', undefined],
] as const)('%s groups/%s is not for developers', async (method, target, body) => {
  const token = server.tokens.developer;
  const of = target === '' ? '/v1/master/groups' : target.replace('one', path);
  expect(await outcome(server.request(method, of, { token, body }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});

it('lets an admin move no owner', async () => {
  const token = server.tokens.admin;
  const denied = (pointer: string) => ({
    status: 403,
    body: refused('permission_denied', `${pointer}: An admin cannot change an owner's rules.`, pointer),
  });
  const add = { addMembers: [ID.developer, ID.owner] };
  expect(await outcome(server.request('PATCH', path, { token, body: add }))).toEqual(denied('/addMembers/1'));
  await server.request('PATCH', path, { body: add });
  const removal = { removeMembers: ['owner@example.com'] };
  expect(await outcome(server.request('PATCH', path, { token, body: removal }))).toEqual(denied('/removeMembers/0'));
  expect(await outcome(server.request('DELETE', path, { token }))).toEqual({
    status: 403,
    body: refused('permission_denied', "An admin cannot change an owner's rules."),
  });
  expect((await server.request('PATCH', path, { token, body: { addKeys: [ID.developerKey] } })).status).toBe(200);
});

it.each([
  [ID.playgroundKey, 'A playground key cannot be given rules.'],
  [ID.platformKey, 'A platform key cannot be given rules.'],
])('takes no key that takes no rules: %s', async (key, message) => {
  expect(await outcome(server.request('PATCH', path, { body: { addKeys: [key] } }))).toEqual({
    status: 403,
    body: refused('permission_denied', `/addKeys/0: ${message}`, '/addKeys/0'),
  });
});
