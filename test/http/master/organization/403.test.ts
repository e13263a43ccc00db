import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('PATCH /v1/master/organization', () => {
  it.each(['admin', 'developer'] as const)('is not for an %s', async (role) => {
    const sent = { token: server.tokens[role], body: { name: 'Mine' } };
    expect(await outcome(server.request('PATCH', '/v1/master/organization', sent))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Only an owner can change the organization.'),
    });
  });
});
