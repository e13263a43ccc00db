import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const MODELS = ['sandbox-faulty', 'sandbox-free', 'sandbox-paid', 'sandbox-slow'];
const ANY = ['0.0.0.0/0', '::/0', 'unknown'];

let ruleId: string;
beforeEach(async () => {
  await server.store.write((db) => {
    db.connection.prepare('DELETE FROM rules').run();
    db.connection.prepare('UPDATE organizations SET rule_revision = 0').run();
  });
  const body = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-p*'] } };
  const { text } = await server.request('POST', `/v1/master/members/${ID.developer}/iam`, { body });
  ruleId = /rule_[0-9a-f]{32}/.exec(text)?.[0] ?? '';
});

describe('GET /v1/master/keys/{id}/access', () => {
  it('is everything that the key reaches, and what denies the rest', async () => {
    const answer = await server.request('GET', `/v1/master/keys/${ID.developerKey}/access`);
    expect(JSON.parse(answer.text)).toEqual({
      holder: { scope: 'key', id: ID.developerKey, name: "The developer's" },
      policyRevision: expect.stringMatching(/^[0-9a-f]{12}\.1$/),
      addresses: [{ addresses: ANY, permitted: true, ruleIds: [] }],
      reached: MODELS.filter((model) => model !== 'sandbox-paid').map((model) => ({
        model,
        provider: 'sandbox',
        ruleIds: [],
      })),
      denied: [{ model: 'sandbox-paid', provider: 'sandbox', ruleIds: [ruleId] }],
      rules: [{ id: ruleId, scope: 'member', ruleType: 'deny_models' }],
    });
    expect(answer.headers.get('x-policy-revision')).toMatch(/^[0-9a-f]{12}\.1$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it("a developer sees his own key's", async () => {
    const { developer } = server.tokens;
    const answer = await server.request('GET', `/v1/master/keys/${ID.developerKey}/access`, { token: developer });
    expect(answer.status).toBe(200);
  });
});

describe('POST /v1/master/policy/evaluate', () => {
  const evaluate = async (body: object, token = server.tokens.owner): Promise<unknown> => {
    const answer = await server.request('POST', '/v1/master/policy/evaluate', { body, token });
    expect(answer.status).toBe(200);
    return JSON.parse(answer.text);
  };

  it('judges a request by a stored key', async () => {
    expect(await evaluate({ key: ID.developerKey, request: { model: 'sandbox-paid', address: '192.0.2.1' } })).toEqual({
      outcome: 'deny',
      reason: `Access denied: model not allowed: sandbox-p* is denied by rule ${ruleId}. This is an organization member IAM rule set by the org admin.`,
      request: { action: 'chat', model: 'sandbox-paid', address: '192.0.2.1' },
      candidates: ['sandbox/sandbox-paid'],
      permitted: [],
      violations: [
        {
          scope: 'member',
          kind: 'models',
          effect: 'deny',
          candidate: 'sandbox/sandbox-paid',
          ruleIds: [ruleId],
          values: ['sandbox-p*'],
        },
      ],
      rules: [{ id: ruleId, scope: 'member', ruleType: 'deny_models' }],
      flips: { sets: [[ruleId]], exhaustive: true },
      alternative: { model: 'sandbox-free', provider: 'sandbox', nearness: 'same family' },
      policyRevision: expect.stringMatching(/^[0-9a-f]{12}\.1$/),
    });
  });

  it('judges it by drafts: on a stored key, and on one that is not there', async () => {
    const request = { model: 'sandbox-paid' };
    const removal = [{ id: ruleId, remove: true }];
    expect(await evaluate({ key: ID.developerKey, rules: removal, request })).toMatchObject({ outcome: 'permit' });
    expect(await evaluate({ request })).toMatchObject({ outcome: 'permit' });
    const rules = [{ ruleType: 'allow_models', ruleValue: { models: ['sandbox-free'] } }];
    expect(await evaluate({ rules, request })).toMatchObject({
      outcome: 'deny',
      violations: [{ scope: 'key', ruleIds: ['draft_1'] }],
    });
  });

  it('lets a developer try new rules on his own key', async () => {
    const rules = [{ ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } }];
    const body = { key: ID.developerKey, rules, request: { model: 'sandbox-free' } };
    expect(await evaluate(body, server.tokens.developer)).toMatchObject({ outcome: 'deny' });
  });
});

describe('POST /v1/master/policy/diff', () => {
  it('is exactly what drafts would change, for whom, by which rules', async () => {
    const body = {
      rules: [
        { id: ruleId, remove: true },
        { key: ID.ownerKey, ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } },
      ],
    };
    const developers = [
      { scope: 'key', id: ID.developerKey, name: "The developer's" },
      { scope: 'key', id: ID.playgroundKey, name: '' },
      { scope: 'member', id: ID.developer, name: 'developer@example.com' },
    ];
    const answer = await server.request('POST', '/v1/master/policy/diff', { body });
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 200,
      body: {
        gained: 3,
        lost: 4,
        flips: [
          {
            change: 'lost',
            holders: [{ scope: 'key', id: ID.ownerKey, name: "The owner's" }],
            mappings: MODELS.map((model) => `sandbox/${model}`),
            addresses: ['10.0.0.0/8', 'unknown'],
            reason: 'rules',
            rules: [{ id: 'draft_2', scope: 'key', ruleType: 'deny_ip_cidrs', change: 'added' }],
          },
          {
            change: 'gained',
            holders: developers,
            mappings: ['sandbox/sandbox-paid'],
            addresses: ANY,
            reason: 'rules',
            rules: [{ id: ruleId, scope: 'member', ruleType: 'deny_models', change: 'removed' }],
          },
        ],
      },
    });
  });

  it('changes nothing', async () => {
    const body = { rules: [{ id: ruleId, remove: true }] };
    await server.request('POST', '/v1/master/policy/diff', { body });
    const list = await outcome(server.request('GET', `/v1/master/members/${ID.developer}/iam`));
    expect(list).toMatchObject({ body: { rules: [{ ruleType: 'deny_models' }] } });
  });
});
