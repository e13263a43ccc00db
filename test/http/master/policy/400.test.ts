import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const rule = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } };

it.each([
  ['evaluate', {}, '/request', '/request is missing.'],
  ['evaluate', { request: {} }, '/request/model', '/request/model is missing.'],
  ['evaluate', { request: { model: 'sandbox-paid' }, colour: 1 }, '/colour', '/colour (1) is not a known field.'],
  [
    'evaluate',
    { request: { model: 'sandbox-paid', address: 'here' } },
    '/request/address',
    '/request/address ("here") is not an IPv4 or IPv6 address.',
  ],
  [
    'evaluate',
    { request: { model: 'sandbox-paid' }, rules: [{ ...rule, ruleValue: { models: ['a*b'] } }] },
    '/rules/0/ruleValue/models/0',
    '/rules/0/ruleValue/models/0 ("a*b") must be a model id (letters, digits and . _ : @ / -, at most 512 of them) or a prefix of one that ends in its only *.',
  ],
  ['diff', {}, '/rules', '/rules is missing.'],
  ['diff', { rules: [] }, '/rules', '/rules must hold at least one entry.'],
  [
    'diff',
    { rules: [rule] },
    '/rules/0',
    '/rules/0 must name one of key, member, group and organization: whose rule it is.',
  ],
  [
    'diff',
    { rules: [{ ...rule, key: ID.foreignKey }] },
    '/rules/0/key',
    `/rules/0/key: no key is called "${ID.foreignKey}".`,
  ],
  [
    'diff',
    { rules: [{ id: ID.absentRule, remove: true }] },
    '/rules/0/id',
    `/rules/0/id ("${ID.absentRule}") is not an active rule.`,
  ],
])('%s refuses %j and names the fault', async (path, body, param, message) => {
  const answer = await server.request('POST', `/v1/master/policy/${path}`, { body });
  expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
});

it.each(['policy/diff', `keys/${ID.ownerKey}/access`])(
  '%s refuses a flag that is neither true nor false',
  async (path) => {
    const body = path.startsWith('policy') ? { rules: [{ ...rule, key: ID.ownerKey }] } : undefined;
    const sent = body === undefined ? {} : { body };
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await server.request(method, `/v1/master/${path}?withoutCredential=yes`, sent);
    expect(await outcome(answer)).toEqual({
      status: 400,
      body: refused(
        'invalid_request',
        'The query parameter withoutCredential must be true or false.',
        '/withoutCredential',
      ),
    });
  },
);
