import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { updateOrganization } from '../../../../src/store/tenants/tenants.ts';
import { ID, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const body = { ruleType: 'deny_models', ruleValue: { models: ['*'] } };

describe('POST …/iam is denied', () => {
  it("to an admin for an owner's rules", async () => {
    const token = server.tokens.admin;
    expect(
      await outcome(server.request('POST', '/v1/master/members/owner%40example.com/iam', { token, body })),
    ).toEqual({
      status: 403,
      body: refused('permission_denied', "An admin cannot change an owner's rules."),
    });
  });

  it('to a developer for members and the organization', async () => {
    const token = server.tokens.developer;
    for (const owner of [`members/${ID.developer}`, 'organization']) {
      expect(await outcome(server.request('POST', `/v1/master/${owner}/iam`, { token, body }))).toEqual({
        status: 403,
        body: refused('permission_denied', 'Developers can only manage their own keys.'),
      });
    }
  });

  it('for a playground key, before a rule is looked up', async () => {
    for (const method of ['PATCH', 'DELETE']) {
      const sent = method === 'PATCH' ? { body: { mode: 'report' } } : {};
      const path = `/v1/master/keys/${ID.playgroundKey}/iam/${ID.absentRule}`;
      expect(await outcome(server.request(method, path, sent))).toEqual({
        status: 403,
        body: refused('permission_denied', 'A playground key cannot be given rules.'),
      });
    }
  });

  it('for a playground key', async () => {
    expect(await outcome(server.request('POST', `/v1/master/keys/${ID.playgroundKey}/iam`, { body }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'A playground key cannot be given rules.'),
    });
  });

  it('for IP rules without the enterprise plan', async () => {
    await server.store.write((db) => updateOrganization(db, ID.organization, { plan: 'pro' }, startMs));
    const ip = { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['0.0.0.0/0'] } };
    expect(await outcome(server.request('POST', '/v1/master/organization/iam', { body: ip }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'IP rules are part of the enterprise plan only.'),
    });
  });
});
