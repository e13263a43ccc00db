import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATHS = [`members/${ID.developer}/budget`, `projects/${ID.project}/budget`, 'organization/budget'];

describe('budgets are not for', () => {
  it.each(['budgets', ...PATHS])('a developer: GET %s', async (path) => {
    expect(await outcome(server.request('GET', `/v1/master/${path}`, { token: server.tokens.developer }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only manage their own keys.'),
    });
  });

  it.each(PATHS)('a developer: PATCH %s', async (path) => {
    const sent = { token: server.tokens.developer, body: { usageLimit: null } };
    expect((await server.request('PATCH', `/v1/master/${path}`, sent)).status).toBe(403);
  });

  it.each([
    ['organization/budget', 'Only an owner can change the organization.'],
    [`members/${ID.owner}/budget`, 'An admin cannot change an owner.'],
  ])('an admin: PATCH %s', async (path, message) => {
    const sent = { token: server.tokens.admin, body: { usageLimit: '5' } };
    expect(await outcome(server.request('PATCH', `/v1/master/${path}`, sent))).toEqual({
      status: 403,
      body: refused('permission_denied', message),
    });
  });

  it.each([`members/${ID.developer}/budget`, `projects/${ID.project}/budget`])(
    'but an admin sets those of the others: PATCH %s',
    async (path) => {
      const sent = { token: server.tokens.admin, body: { usageLimit: '5' } };
      expect((await server.request('PATCH', `/v1/master/${path}`, sent)).status).toBe(200);
    },
  );
});
