import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeMember } from '../../../../src/admin/tenants/members.ts';
import { ID, owner, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('POST /v1/master/master-keys', () => {
  it('makes a key that acts for the maker of the key it is made with, with that maker’s role at the time of the call', async () => {
    const answer = await server.request('POST', '/v1/master/master-keys', {
      token: server.tokens.admin,
      body: { description: 'Terraform' },
    });
    expect(await outcome(answer)).toEqual({
      status: 201,
      body: {
        masterKey: {
          id: 'mkey_new',
          createdAt: START,
          updatedAt: START,
          description: 'Terraform',
          createdBy: ID.admin,
          createdByEmail: 'admin@example.com',
          maskedToken: 'pclm_abcd…wxyz',
          lastUsedAt: null,
          token: 'pclm_secret',
        },
      },
    });
    const { id, token } = JSON.parse(answer.text).masterKey;
    const members = async () => (await server.request('GET', '/v1/master/members', { token })).status;
    expect(await members()).toBe(200);
    await server.store.write((db, now) => changeMember(db, owner, ID.admin, { role: 'developer' }, now));
    expect(await members()).toBe(403);
    expect((await server.request('GET', `/v1/master/master-keys/${id}`)).text).not.toContain(token);
  });
});
