import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('a master key', () => {
  it('of a developer makes no keys for others', async () => {
    const answer = await server.request('POST', '/v1/master/keys', {
      token: server.tokens.developer,
      body: { projectId: ID.project, createdBy: ID.owner },
    });
    expect(await outcome(answer)).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only make keys for themselves.'),
    });
  });

  it.each([
    ['PATCH', { description: 'Mine' }, 'renamed'],
    ['PATCH', { usageLimit: '1' }, 'limited'],
    ['PATCH', { status: 'inactive' }, 'disabled'],
    ['DELETE', undefined, 'deleted'],
  ])('cannot %s a playground key: %j', async (method, body, action) => {
    const answer = await server.request(method, `/v1/master/keys/${ID.playgroundKey}`, { body });
    expect(await outcome(answer)).toEqual({
      status: 403,
      body: refused('permission_denied', `A playground key cannot be ${action}.`),
    });
  });
});
