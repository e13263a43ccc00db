import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const noKey = { status: 404, body: refused('not_found', 'There is no such key.') };

describe('a key', () => {
  it.each([
    ['of another organization', ID.foreignKey],
    ['that does not exist', ID.absent],
    ['whose id is no id', '__proto__'],
    ['whose id holds a slash and a zero', 'a%2F%00'],
  ])('%s is not found', async (_, id) => {
    const target = `/v1/master/keys/${id}`;
    expect(await outcome(server.request('GET', target))).toEqual(noKey);
    expect(await outcome(server.request('PATCH', target, { body: { description: 'Mine' } }))).toEqual(noKey);
    expect(await outcome(server.request('DELETE', target))).toEqual(noKey);
  });

  it("of someone else is not found by a developer's master key", async () => {
    const token = server.tokens.developer;
    const target = `/v1/master/keys/${ID.ownerKey}`;
    expect(await outcome(server.request('GET', target, { token }))).toEqual(noKey);
    expect(await outcome(server.request('DELETE', target, { token }))).toEqual(noKey);
  });
});

describe('a new key', () => {
  it('cannot be in a project, or of a member, of another organization', async () => {
    const inProject = { projectId: ID.otherProject };
    expect(await outcome(server.request('POST', '/v1/master/keys', { body: inProject }))).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such project.'),
    });
    const ofMember = { projectId: ID.project, createdBy: ID.foreigner };
    expect(await outcome(server.request('POST', '/v1/master/keys', { body: ofMember }))).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such member.'),
    });
  });
});
