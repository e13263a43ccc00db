import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const ofOwner = `/v1/master/master-keys/mkey_${'1'.padStart(32, '0')}`;

it('a developer makes no master keys', async () => {
  const sent = { token: server.tokens.developer, body: { description: 'Mine' } };
  expect(await outcome(server.request('POST', '/v1/master/master-keys', sent))).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});

it.each([
  ['PATCH', { description: 'Mine' }],
  ['DELETE', undefined],
])("an admin cannot %s an owner's", async (method, body) => {
  expect(await outcome(server.request(method, ofOwner, { token: server.tokens.admin, body }))).toEqual({
    status: 403,
    body: refused('permission_denied', "An admin cannot change an owner's master key."),
  });
  expect((await server.request('GET', ofOwner, { token: server.tokens.admin })).status).toBe(200);
});
