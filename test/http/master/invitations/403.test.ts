import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/invitations';

it('an admin neither invites owners nor revokes their invitations', async () => {
  const body = { email: 'ada@example.com', role: 'owner' };
  const { admin: token } = server.tokens;
  expect(await outcome(server.request('POST', PATH, { token, body }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'An admin cannot make anyone an owner.'),
  });
  const { id } = JSON.parse((await server.request('POST', PATH, { body })).text).invitation;
  expect(await outcome(server.request('DELETE', `${PATH}/${id}`, { token }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'An admin cannot change an owner.'),
  });
});

it.each([
  ['GET', PATH, undefined],
  ['POST', PATH, { email: 'ada@example.com', role: 'developer' }],
  ['GET', `${PATH}/inv_${'0'.repeat(32)}`, undefined],
  ['DELETE', `${PATH}/inv_${'0'.repeat(32)}`, undefined],
])('%s %s is not for developers', async (method, path, body) => {
  expect(await outcome(server.request(method, path, { token: server.tokens.developer, body }))).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});
