import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const rule = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } };
const request = { model: 'sandbox-paid' };

it.each([
  ['diff', { rules: [{ ...rule, key: ID.developerKey }] }],
  ['evaluate', { request }],
  ['evaluate', { key: ID.developerKey, rules: [{ ...rule, organization: true }], request }],
  ['evaluate', { key: ID.developerKey, rules: [{ id: ID.absentRule, remove: true }], request }],
])('a developer may not %s %j', async (path, body) => {
  const answer = await server.request('POST', `/v1/master/policy/${path}`, { body, token: server.tokens.developer });
  expect(await outcome(answer)).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});

it('a developer may not see the policy bundles', async () => {
  const answer = await server.request('GET', '/v1/master/policy/bundle', { token: server.tokens.developer });
  expect(await outcome(answer)).toEqual({
    status: 403,
    body: refused('permission_denied', 'Developers can only manage their own keys.'),
  });
});
