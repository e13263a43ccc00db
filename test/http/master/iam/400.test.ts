import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/organization/iam';

describe('POST …/iam', () => {
  it.each([
    [
      { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8', '192.0.2.300/32'] } },
      '/ruleValue/ipCidrs/1',
      '/ruleValue/ipCidrs/1 is not a CIDR range: "192.0.2.300/32" does not begin with an IPv4 or IPv6 address.',
    ],
    [
      { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.1'] } },
      '/ruleValue/ipCidrs/0',
      '/ruleValue/ipCidrs/0 is not a CIDR range: "192.0.2.1" has no prefix length; a single address ends in /32 or /128.',
    ],
    [
      { ruleType: 'deny_providers', ruleValue: { providers: [] } },
      '/ruleValue/providers',
      '/ruleValue/providers must hold at least one entry.',
    ],
    [{ ruleType: 'deny_models' }, '/ruleValue', '/ruleValue is missing.'],
    [
      { ruleType: 'deny_models', ruleValue: { models: ['a'] }, failOnNewAccess: 'yes' },
      '/failOnNewAccess',
      '/failOnNewAccess ("yes") must be of type boolean.',
    ],
  ])('refuses %j and names the entry', async (body, param, message) => {
    const answer = await server.request('POST', PATH, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it('judges the shape before the owner', async () => {
    const answer = await server.request('POST', `/v1/master/keys/${ID.playgroundKey}/iam`, { body: {} });
    expect(answer.status).toBe(400);
  });
});

describe('GET …/iam', () => {
  it.each([['limit=1000'], ['cursor=nonsense']])('refuses ?%s', async (query) => {
    expect((await server.request('GET', `${PATH}?${query}`)).status).toBe(400);
  });
});

describe('DELETE …/iam/{ruleId}', () => {
  it('refuses a failOnNewAccess that is neither true nor false', async () => {
    const answer = await server.request('DELETE', `${PATH}/${ID.absentRule}?failOnNewAccess=maybe`);
    expect(await outcome(answer)).toEqual({
      status: 400,
      body: refused(
        'invalid_request',
        'The query parameter failOnNewAccess must be true or false.',
        '/failOnNewAccess',
      ),
    });
  });
});
