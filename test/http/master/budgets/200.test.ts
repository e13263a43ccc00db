import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const none = {
  state: 'active',
  usageLimit: null,
  usage: '0',
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
  currentPeriodUsage: null,
  currentPeriodStartedAt: null,
  currentPeriodResetAt: null,
};
const OWNERS = [
  ['members/developer@example.com', { id: ID.developer, scope: 'member', name: 'developer@example.com' }],
  [`projects/${ID.project}`, { id: ID.project, scope: 'project', name: 'Main' }],
  ['organization', { id: ID.organization, scope: 'organization', name: 'Example' }],
] as const;

const request = (method: string, path: string, body?: object) =>
  outcome(server.request(method, `/v1/master/${path}`, body === undefined ? {} : { body }));

describe.each(OWNERS)('…/%s/budget', (path, owner) => {
  it('is without limits at first, and says what was spent', async () => {
    expect(await request('GET', `${path}/budget`)).toEqual({ status: 200, body: { budget: { ...owner, ...none } } });
  });

  it('takes both limits, keeps those that a change does not name, and loses them by null', async () => {
    const monthly = { periodUsageLimit: '100.5', periodUsageDurationValue: 1, periodUsageDurationUnit: 'month' };
    const recurring = { ...owner, ...none, ...monthly, currentPeriodUsage: '0' };
    expect(await request('PATCH', `${path}/budget`, monthly)).toEqual({ status: 200, body: { budget: recurring } });
    expect(await request('PATCH', `${path}/budget`, { usageLimit: '0' })).toEqual({
      status: 200,
      body: { budget: { ...recurring, usageLimit: '0', state: 'limit_reached' } },
    });
    expect(await request('PATCH', `${path}/budget`, { usageLimit: null })).toEqual({
      status: 200,
      body: { budget: recurring },
    });
    expect(await request('PATCH', `${path}/budget`, { periodUsageLimit: null })).toEqual({
      status: 200,
      body: { budget: { ...owner, ...none } },
    });
  });
});

describe('GET /v1/master/budgets', () => {
  it('lists those that have a limit, with names, page by page', async () => {
    expect(await request('GET', 'budgets')).toEqual({ status: 200, body: { budgets: [], nextCursor: null } });
    for (const [path] of OWNERS) await request('PATCH', `${path}/budget`, { usageLimit: '5' });
    const limited = OWNERS.map(([, owner]) => ({ ...owner, ...none, usageLimit: '5' }));
    const [member, project, organization] = limited;

    expect(await request('GET', 'budgets')).toEqual({
      status: 200,
      body: { budgets: [member, organization, project], nextCursor: null },
    });
    const first = (await server.request('GET', '/v1/master/budgets?limit=2')).body;
    const { nextCursor } = Object(first);
    expect(first).toEqual({ budgets: [member, organization], nextCursor: expect.any(String) });
    expect(await request('GET', `budgets?limit=2&cursor=${nextCursor}`)).toEqual({
      status: 200,
      body: { budgets: [project], nextCursor: null },
    });
  });
});
