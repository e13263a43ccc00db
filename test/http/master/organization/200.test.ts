import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const organization = {
  id: ID.organization,
  createdAt: START,
  updatedAt: START,
  name: 'Example',
  plan: 'enterprise',
  newKeyLimits: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
};

describe('GET /v1/master/organization', () => {
  it.each(['owner', 'admin', 'developer'] as const)('shows it to an %s', async (role) => {
    const answer = await server.request('GET', '/v1/master/organization', { token: server.tokens[role] });
    expect(await outcome(answer)).toEqual({ status: 200, body: { organization } });
    expect(Object.keys(JSON.parse(answer.text).organization)).toEqual(Object.keys(organization));
  });

  it('shows each the one of the key', async () => {
    const { body } = await server.request('GET', '/v1/master/organization', { token: server.tokens.foreigner });
    expect(body).toEqual({ organization: { ...organization, id: ID.otherOrganization } });
  });
});

describe('PATCH /v1/master/organization', () => {
  it('changes name and plan, which holds from the next rule on, and no other organization', async () => {
    server.clock.advance(1000);
    const changed = { ...organization, name: 'New', plan: 'pro', updatedAt: '2026-01-31T12:00:01.000Z' };
    const body = { name: 'New', plan: 'pro' };
    expect(await outcome(server.request('PATCH', '/v1/master/organization', { body }))).toEqual({
      status: 200,
      body: { organization: changed },
    });
    const ipRule = { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } };
    expect((await server.request('POST', '/v1/master/organization/iam', { body: ipRule })).status).toBe(403);
    const enterprise = { body: { plan: 'enterprise' } };
    expect((await server.request('PATCH', '/v1/master/organization', enterprise)).body).toEqual({
      organization: { ...changed, plan: 'enterprise' },
    });
    expect((await server.request('POST', '/v1/master/organization/iam', { body: ipRule })).status).toBe(201);
    const other = await server.request('GET', '/v1/master/organization', { token: server.tokens.foreigner });
    expect(other.body).toEqual({ organization: { ...organization, id: ID.otherOrganization } });
  });
});
