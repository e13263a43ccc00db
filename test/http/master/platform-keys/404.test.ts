import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const noKey = { status: 404, body: refused('not_found', 'There is no such key.') };

describe('a platform key is not found', () => {
  it.each([
    ['of another organization', ID.platformKey, 'foreigner'],
    ['that does not exist', ID.absent, 'owner'],
    ['that is a gateway key', ID.ownerKey, 'owner'],
    ['that is a playground key', ID.playgroundKey, 'owner'],
  ] as const)('%s', async (_, id, role) => {
    const token = server.tokens[role];
    const target = `/v1/master/platform-keys/${id}`;
    expect(await outcome(server.request('GET', target, { token }))).toEqual(noKey);
    expect(await outcome(server.request('DELETE', target, { token }))).toEqual(noKey);
  });

  it('nor made in a project, or for a member, of another organization', async () => {
    const create = (body: object) => outcome(server.request('POST', '/v1/master/platform-keys', { body }));
    expect(await create({ projectId: ID.otherProject })).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such project.'),
    });
    expect(await create({ projectId: ID.project, createdBy: ID.foreigner })).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such member.'),
    });
  });
});
