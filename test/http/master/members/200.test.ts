import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const times = { createdAt: START, updatedAt: START };
const unlimited = { requestsPerMinute: null, tokensPerMinute: null };
const developer = {
  id: ID.developer,
  ...times,
  email: 'developer@example.com',
  name: null,
  role: 'developer',
  ...unlimited,
};
const admin = { id: ID.admin, ...times, email: 'admin@example.com', name: null, role: 'admin', ...unlimited };
const owner = { id: ID.owner, ...times, email: 'owner@example.com', name: null, role: 'owner', ...unlimited };

const change = (member: string, body: object, token?: string) =>
  outcome(server.request('PATCH', `/v1/master/members/${member}`, { body, ...(token === undefined ? {} : { token }) }));

describe('GET /v1/master/members', () => {
  it('lists the members, newest first, in pages', async () => {
    const first = await server.request('GET', '/v1/master/members?limit=2');
    expect(first).toMatchObject({ status: 200, body: { members: [developer, admin] } });
    const { nextCursor } = JSON.parse(first.text);
    const second = await server.request('GET', `/v1/master/members?limit=2&cursor=${nextCursor}`);
    expect(second.body).toEqual({ members: [owner], nextCursor: null });
  });

  it('shows one by membership id, or by e-mail in any case', async () => {
    for (const reference of [ID.admin, 'admin@example.com', 'Admin%40Example.com']) {
      expect(await outcome(server.request('GET', `/v1/master/members/${reference}`))).toEqual({
        status: 200,
        body: { member: admin },
      });
    }
  });
});

describe('PATCH /v1/master/members/{member}', () => {
  it('changes name and role, by owners', async () => {
    expect(await change('developer@example.com', { name: 'Dev', role: 'owner' })).toEqual({
      status: 200,
      body: { member: { ...developer, name: 'Dev', role: 'owner' }, widens: { count: 0, cells: [] } },
    });
    expect(await change(ID.developer, { name: null })).toEqual({
      status: 200,
      body: { member: { ...developer, role: 'owner' }, widens: { count: 0, cells: [] } },
    });
  });

  it('changes members who are no owners, by admins', async () => {
    const { admin: token } = server.tokens;
    expect(await change(ID.developer, { role: 'admin' }, token)).toMatchObject({ status: 200 });
    expect(await change(ID.developer, { role: 'developer', name: 'Dev' }, token)).toEqual({
      status: 200,
      body: { member: { ...developer, name: 'Dev' }, widens: { count: 0, cells: [] } },
    });
  });

  it('holds for their master key from the next request on', async () => {
    const list = async () =>
      (await server.request('GET', '/v1/master/members', { token: server.tokens.developer })).status;
    const seen = [await list()];
    await change(ID.developer, { role: 'admin' });
    seen.push(await list());
    await change(ID.developer, { role: 'developer' });
    seen.push(await list());
    expect(seen).toEqual([403, 200, 403]);
  });

  it('lets an owner step down while there is another one', async () => {
    await change(ID.admin, { role: 'owner' });
    expect(await change(ID.owner, { role: 'developer' })).toMatchObject({ status: 200 });
    expect(await change(ID.owner, { role: 'owner' })).toMatchObject({ status: 403 });
  });
});

describe('DELETE /v1/master/members/{member}', () => {
  it('removes the member: their master keys end, their keys are disabled, and neither they nor their rules are found', async () => {
    const rule = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };
    await server.request('POST', `/v1/master/members/${ID.developer}/iam`, { body: rule });

    expect(await outcome(server.request('DELETE', '/v1/master/members/developer@example.com'))).toEqual({
      status: 200,
      body: { id: ID.developer, deleted: true },
    });

    const { status } = await server.request('GET', '/v1/master/keys', { token: server.tokens.developer });
    const { body } = await server.request('GET', `/v1/master/keys/${ID.developerKey}`);
    expect([status, body]).toEqual([
      401,
      { key: expect.objectContaining({ status: 'inactive', state: 'disabled', createdBy: null }) },
    ]);
    for (const path of ['', '/iam']) {
      expect((await server.request('GET', `/v1/master/members/${ID.developer}${path}`)).status).toBe(404);
    }
    const { masterKeys } = JSON.parse((await server.request('GET', '/v1/master/master-keys')).text);
    expect(masterKeys.map(({ description }: { description: string }) => description)).toEqual(['admin', 'owner']);
  });
});
