import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('an admin', () => {
  it.each([
    ['PATCH', ID.owner, { name: 'Boss' }, 'An admin cannot change an owner.'],
    ['PATCH', ID.owner, { role: 'developer' }, 'An admin cannot change an owner.'],
    ['DELETE', 'owner@example.com', undefined, 'An admin cannot change an owner.'],
    ['PATCH', ID.developer, { role: 'owner' }, 'An admin cannot make anyone an owner.'],
    ['PATCH', ID.admin, { role: 'owner' }, 'An admin cannot make anyone an owner.'],
  ])('is refused %s %s %j', async (method, member, body, message) => {
    const token = server.tokens.admin;
    expect(await outcome(server.request(method, `/v1/master/members/${member}`, { token, body }))).toEqual({
      status: 403,
      body: refused('permission_denied', message),
    });
  });
});

describe('a developer', () => {
  it.each([
    ['GET', '/v1/master/members', undefined],
    ['GET', `/v1/master/members/${ID.developer}`, undefined],
    ['PATCH', `/v1/master/members/${ID.developer}`, { role: 'admin' }],
    ['DELETE', `/v1/master/members/${ID.admin}`, undefined],
  ])('is refused %s %s', async (method, path, body) => {
    const token = server.tokens.developer;
    expect(await outcome(server.request(method, path, { token, body }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only manage their own keys.'),
    });
  });
});
