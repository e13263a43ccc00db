// A policy folder as one document: planned and applied over HTTP.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, type Sent, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());
beforeEach(() =>
  server.store.write((db) => {
    db.connection.prepare('DELETE FROM rules').run();
    db.connection.prepare('UPDATE organizations SET ruleRevision = 0').run();
  }),
);

const deny = (...models: string[]) => ({ ruleType: 'deny_models', ruleValue: { models } });
const FOLDER = { source: 'security', keys: { "The owner's": { rules: { 'no-paid': deny('sandbox-paid', 'gpt-5') } } } };

const post = (path: string, body: unknown = FOLDER, sent: Sent = {}) =>
  server.request('POST', `/v1/master/policy/${path}`, { body, ...sent });
const rules = async () => JSON.parse((await server.request('GET', `/v1/master/keys/${ID.ownerKey}/iam`)).text).rules;

const RULE = { ...deny('sandbox-paid', 'gpt-5'), status: 'active', mode: 'enforce', description: null };
const CHANGE = {
  action: 'add',
  owner: { scope: 'key', id: ID.ownerKey, name: "The owner's" },
  name: 'no-paid',
  ruleId: null,
  before: null,
  after: RULE,
};
const PLAN = {
  applied: false,
  source: 'security',
  digest: expect.stringMatching(/^[0-9a-f]{64}$/),
  prune: false,
  ruleRevision: 0,
  changes: [CHANGE],
  unchanged: 0,
  warnings: [],
  access: {
    gained: 0,
    lost: 1,
    withoutCredential: { gained: 0, lost: expect.any(Number) },
    flips: [
      {
        change: 'lost',
        holders: [{ scope: 'key', id: ID.ownerKey, name: "The owner's" }],
        mappings: ['sandbox/sandbox-paid'],
        credential: true,
        addresses: ['0.0.0.0/0', '::/0', 'unknown'],
        reason: 'rules',
        rules: [{ id: 'no-paid', scope: 'key', ruleType: 'deny_models', description: null, change: 'added' }],
      },
    ],
    ifEnforced: { gained: 0, lost: 0, withoutCredential: { gained: 0, lost: 0 }, flips: [] },
    changedRules: 1,
    warnings: [],
  },
};

describe('POST /v1/master/policy/plan', () => {
  it('is what would change, of rules and of access, and changes nothing', async () => {
    expect(await outcome(post('plan'))).toEqual({ status: 200, body: PLAN });
    expect(await rules()).toEqual([]);
  });

  it('lists what cannot be called too where that is asked for', async () => {
    const { access } = JSON.parse((await post('plan?withoutCredential=true')).text);
    const named = access.flips.filter(({ credential }: { credential: boolean }) => !credential);
    expect(named.flatMap(({ mappings }: { mappings: string[] }) => mappings)).toHaveLength(
      access.withoutCredential.lost,
    );
    expect(access.withoutCredential.lost).toBeGreaterThan(0);
  });
});

describe('POST /v1/master/policy/apply', () => {
  it('does it, and nothing the second time', async () => {
    const done = await outcome(post('apply?revision=3f2a91c'));
    expect(done).toEqual({
      status: 200,
      body: { ...PLAN, applied: true, changes: [{ ...CHANGE, ruleId: 'rule_new' }] },
    });
    const [rule] = await rules();
    expect(rule).toMatchObject({ ...RULE, managedBy: { source: 'security', name: 'no-paid' } });
    expect(JSON.parse((await post('apply')).text)).toMatchObject({ applied: true, changes: [], unchanged: 1 });
    const { entries } = JSON.parse((await server.request('GET', '/v1/master/audit?action=policy.apply')).text);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({
      after: { name: 'security', revision: '3f2a91c' },
      actor: { kind: 'master_key' },
    });
  });

  it('of a reviewed plan is refused once the rules, or the folder, are others', async () => {
    const { ruleRevision, digest } = JSON.parse((await post('plan')).text);
    const other = { keys: { "The owner's": { rules: {} } } };
    expect(await post(`apply?ruleRevision=${ruleRevision}&digest=${digest}`, other)).toMatchObject({
      status: 409,
      body: { error: { code: 'folder_changed' } },
    });
    await server.request('POST', '/v1/master/organization/iam', { body: deny('x') });
    expect(await post(`apply?ruleRevision=${ruleRevision}`)).toMatchObject({
      status: 409,
      body: { error: { code: 'rules_changed' } },
    });
    expect(await rules()).toEqual([]);
    expect(await post(`apply?ruleRevision=${ruleRevision + 1}&digest=${digest}`)).toMatchObject({ status: 200 });
  });

  it('that must permit nothing new is refused when it would, credential or not, and only then', async () => {
    await post('apply');
    const wider = { ...FOLDER, keys: { "The owner's": { rules: {} } } };
    expect(await post('apply?failOnNewAccess=true', wider)).toMatchObject({
      status: 409,
      body: {
        error: {
          code: 'new_access',
          message: expect.stringMatching(
            /^The change is refused: it would newly permit \d+ pairs of a key or member and a mapping\.$/,
          ),
        },
      },
    });
    expect(await rules()).toHaveLength(1);
    const narrower = { keys: { "The owner's": { rules: { more: deny('sandbox-slow') } } } };
    expect(await post('apply?failOnNewAccess=true', narrower)).toMatchObject({ status: 200 });
    expect(await post('apply', wider)).toMatchObject({ status: 200 });
    expect((await rules()).map(({ managedBy }: { managedBy: { name: string } }) => managedBy.name)).toEqual(['more']);
  });

  it('with prune removes what no folder states', async () => {
    await server.request('POST', '/v1/master/organization/iam', { body: deny('x') });
    const changes = [{ action: 'remove', name: null, owner: { scope: 'organization' } }];
    expect(JSON.parse((await post('plan?prune=1', {})).text)).toMatchObject({ prune: true, changes });
    expect(JSON.parse((await post('apply?prune=true', {})).text)).toMatchObject({ applied: true, changes });
    expect(JSON.parse((await post('plan?prune=1', {})).text)).toMatchObject({ changes: [] });
  });
});

describe.each(['plan', 'apply'])('POST /v1/master/policy/%s', (path) => {
  it('refuses a folder at its first fault, with its place', async () => {
    const folder = { keys: { "The owner's": { rules: { a: deny('x y') } }, b: { rules: {} } } };
    const place = "/keys/The owner's/rules/a/ruleValue/models/0";
    expect(await outcome(post(path, folder))).toEqual({
      status: 400,
      body: refused(
        'invalid_request',
        `${place} ("x y") must be a model id (letters, digits and . _ : @ / -, at most 512 of them) or a prefix of one that ends in its only *.`,
        place,
      ),
    });
  });

  it.each([
    [{ teams: {} }, '/teams is not a known field.', '/teams'],
    [{ keys: [] }, '/keys must be of type object.', '/keys'],
    [
      { organization: { rules: { a_b: {} } } },
      '/organization/rules/a_b must be a rule whose name is at most 64 letters, digits, dots and hyphens, the first of them a letter or a digit.',
      '/organization/rules/a_b',
    ],
  ])('refuses %j', async (body, message, param) => {
    expect(await outcome(post(path, body))).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it('refuses a folder that would keep others waiting', async () => {
    const owners = Array.from({ length: 501 }, (_, index) => [`k${index}`, { rules: { a: deny('x') } }]);
    expect(await outcome(post(path, { keys: Object.fromEntries(owners) }))).toEqual({
      status: 400,
      body: refused(
        'invalid_request',
        '1002 owners and rules are more than the 1000 that one request may have: use the command line, when few call.',
      ),
    });
  });

  it('is not for developers, and not for an admin where it changes rules of an owner', async () => {
    expect(await outcome(post(path, FOLDER, { token: server.tokens.developer }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only manage their own keys.'),
    });
    const folder = { members: { 'owner@example.com': { rules: { a: deny('x') } } } };
    const message = "/members/owner@example.com: An admin cannot change an owner's rules.";
    expect(await outcome(post(path, folder, { token: server.tokens.admin }))).toEqual({
      status: 403,
      body: refused('permission_denied', message, '/members/owner@example.com'),
    });
  });
});

it.each(['x', '-1', '1.5', ''])('a ruleRevision of "%s" is refused', async (revision) => {
  expect(await outcome(post(`apply?ruleRevision=${revision}`))).toEqual({
    status: 400,
    body: refused('invalid_request', 'The query parameter ruleRevision must be a whole number.', '/ruleRevision'),
  });
});

it('DELETE of a managed rule warns of the next apply', async () => {
  await post('apply');
  const [{ id }] = await rules();
  const everywhere = { addresses: ['0.0.0.0/0', '::/0', 'unknown'], moreAddresses: 0 };
  const cell = { holder: { scope: 'key', id: ID.ownerKey, name: "The owner's" }, ...everywhere };
  expect(JSON.parse((await server.request('DELETE', `/v1/master/keys/${ID.ownerKey}/iam/${id}`)).text)).toEqual({
    id,
    deleted: true,
    widens: {
      count: 3,
      cells: [
        { ...cell, mapping: 'sandbox/sandbox-paid', credential: true },
        { ...cell, mapping: 'openai/gpt-5', credential: false },
        { ...cell, mapping: 'openrouter/gpt-5', credential: false },
      ],
    },
    warnings: ['The policy folder "security" states this rule as "no-paid": its next apply makes it again.'],
  });
});
