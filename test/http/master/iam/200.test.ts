import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { bearer, JSON_TYPE } from '../../../support/chat.ts';
import { startGateway } from '../../../support/gateway.ts';
import { send } from '../../../support/request.ts';
import { PROXIES_UNSET } from '../../../support/warnings.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const OWNERS = [
  [`keys/${ID.ownerKey}`, { apiKeyId: ID.ownerKey, ownerName: "The owner's" }],
  ['members/Developer%40example.com', { memberId: ID.developer, ownerName: 'developer@example.com' }],
  [`members/${ID.admin}`, { memberId: ID.admin, ownerName: 'admin@example.com' }],
  ['organization', { organizationId: ID.organization, ownerName: 'Example' }],
] as const;

describe.each(OWNERS)('/v1/master/%s/iam', (owner, shownOwner) => {
  it('creates, lists, shows, changes and deletes a rule', async () => {
    const path = `/v1/master/${owner}/iam`;
    const ruleValue = { ipCidrs: ['10.1.2.3/8', '2001:DB8::/32'] };
    const rule = {
      id: 'rule_new',
      createdAt: START,
      updatedAt: START,
      ruleType: 'allow_ip_cidrs',
      ruleValue,
      status: 'active',
      mode: 'enforce',
      description: 'Office',
      reportOnly: null,
      apiKeyId: null,
      memberId: null,
      groupId: null,
      organizationId: null,
      managedBy: null,
      ...shownOwner,
    };
    const made = await server.request('POST', path, {
      body: { ruleType: 'allow_ip_cidrs', ruleValue, description: 'Office' },
    });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({ rule, warnings: [], widens: { count: 0, cells: [] } });
    const { id } = JSON.parse(made.text).rule;

    const listed = await server.request('GET', path);
    expect(listed.status).toBe(200);
    expect(listed.body).toEqual({ rules: [rule], nextCursor: null });
    const shown = await server.request('GET', `${path}/${id}`);
    expect(shown.status).toBe(200);
    expect(shown.body).toEqual({ rule, warnings: [] });

    const change = {
      ruleType: 'deny_models',
      ruleValue: { models: ['gpt-unknown'] },
      mode: 'report',
      description: null,
    };
    const reportOnly = { since: START, wouldDeny: 0, wouldAllow: 0, lastSeenAt: null };
    const changed = await server.request('PATCH', `${path}/${id}`, { body: change });
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({
      rule: { ...rule, ...change, reportOnly },
      before: rule,
      warnings: ['"gpt-unknown" is not the name of a model in the catalogue.'],
      widens: expect.objectContaining({ count: expect.any(Number) }),
    });

    expect((await server.request('GET', `${path}/${id}`)).body).toMatchObject({
      rule: { ...rule, ...change, reportOnly },
    });

    const deleted = await server.request('DELETE', `${path}/${id}`);
    expect(await outcome(deleted)).toEqual({
      status: 200,
      body: { id: 'rule_new', deleted: true, widens: { count: 0, cells: [] } },
    });
    expect((await server.request('GET', path)).body).toEqual({ rules: [], nextCursor: null });
  });
});

describe('a rule on addresses', () => {
  it.each([
    ['is unset', {}, [PROXIES_UNSET]],
    ['says who is believed', { TRUSTED_PROXIES: 'none' }, []],
  ])('that is written, changed or shown while TRUSTED_PROXIES %s', async (_, env, warnings) => {
    const gateway = await startGateway(env);
    const path = '/v1/master/organization/iam';
    const asked = async (method: string, target: string, body?: object) => {
      const headers = [bearer(gateway.firstRun.masterKey), JSON_TYPE];
      const sent = { method, path: target, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      return Object((await send(gateway.management, sent)).json);
    };

    const models = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } };
    const made = await asked('POST', path, models);
    const one = `${path}/${made.rule.id}`;
    const address = { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } };
    const changed = await asked('PATCH', one, address);
    const again = await asked('PATCH', one, { description: 'Office' });
    const answers = [made, await asked('POST', path, address), changed, again, await asked('GET', one)];
    await gateway.close();

    expect(answers.map((answer) => answer.warnings)).toEqual([[], warnings, warnings, warnings, warnings]);
  });
});
