import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AccessReport } from '../../../../src/generated/types.ts';
import { activeMappings } from '../../../../src/workbench/world/world.ts';
import { catalog, ID } from '../../../admin/tenants.ts';
import { policyInForce } from '../../../support/policy-bundles.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const MODELS = ['faulty', 'free', 'image-max', 'image-plus', 'moderation', 'paid', 'slow'].map(
  (name) => `sandbox-${name}`,
);
/** A model that nobody can call, and where it could be. */
const MEANT = catalog.resolve('gpt-5')?.map(({ id }) => id) ?? [];
/** Mappings of providers that nobody has a credential for. */
const OTHERS = activeMappings({ catalog }).length - MODELS.length;
const NOTHING = { gained: 0, lost: 0, withoutCredential: { gained: 0, lost: 0 } };
const ANY = ['0.0.0.0/0', '::/0', 'unknown'];

let ruleId: string;
beforeEach(async () => {
  await server.store.write((db) => {
    db.connection.prepare('DELETE FROM rules').run();
    db.connection.prepare('UPDATE organizations SET ruleRevision = 0').run();
  });
  const body = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-p*'] }, description: 'No paid' };
  const { text } = await server.request('POST', `/v1/master/members/${ID.developer}/iam`, { body });
  ruleId = /rule_[0-9a-f]{32}/.exec(text)?.[0] ?? '';
});

/** Adds something by the API; resolves with its id. */
async function made(path: string, body: object): Promise<string> {
  const { status, text } = await server.request('POST', `/v1/master/${path}`, { body });
  if (status !== 201) throw new Error(text);
  return /"id":"([^"]+)"/.exec(text)?.[1] ?? '';
}

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
        credential: true,
        ruleIds: [],
      })),
      denied: [{ model: 'sandbox-paid', provider: 'sandbox', credential: true, ruleIds: [ruleId] }],
      withoutCredential: OTHERS,
      rules: [{ id: ruleId, scope: 'member', ruleType: 'deny_models', description: 'No paid' }],
    });
    expect(answer.headers.get('x-policy-revision')).toMatch(/^[0-9a-f]{12}\.1$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('holds what a provider key makes callable, and, if asked to, what nothing does', async () => {
    const key = await made('provider-keys', { provider: 'xai', label: 'Ours', token: 'sk-none' });
    const table = async (query: string): Promise<AccessReport> =>
      JSON.parse((await server.request('GET', `/v1/master/keys/${ID.developerKey}/access${query}`)).text);
    const callable = await table('?withoutCredential=false');
    const all = await table('?withoutCredential=true');
    await server.request('DELETE', `/v1/master/provider-keys/${key}`);
    expect(new Set(callable.reached.map(({ provider }) => provider))).toEqual(new Set(['sandbox', 'xai']));
    expect(callable.reached.every(({ credential }) => credential)).toBe(true);
    expect(all.reached.filter(({ credential }) => credential)).toEqual(callable.reached);
    expect(all.reached.filter(({ credential }) => !credential)).toHaveLength(callable.withoutCredential);
    expect(all.withoutCredential).toBe(callable.withoutCredential);
    expect(all.reached).toContainEqual({ model: 'gpt-5', provider: 'openai', credential: false, ruleIds: [] });
  });

  it("developers see their own key's", async () => {
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
      reason: `Access denied: model not allowed: sandbox-p* is denied by rule ${ruleId} (No paid). This is an organization member IAM rule set by the org admin.`,
      request: { action: 'chat', model: 'sandbox-paid', address: '192.0.2.1' },
      candidates: ['sandbox/sandbox-paid'],
      withoutCredential: [],
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
      rules: [{ id: ruleId, scope: 'member', ruleType: 'deny_models', description: 'No paid' }],
      flips: { sets: [[ruleId]], exhaustive: true },
      alternative: { model: 'sandbox-free', provider: 'sandbox', nearness: 'same family' },
      warnings: [],
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

  it('says of a model that nobody can call that it is not found, and what the rules would do', async () => {
    expect(await evaluate({ key: ID.developerKey, request: { model: 'gpt-5' } })).toMatchObject({
      outcome: 'not_found',
      reason: 'No provider of the model `gpt-5` has a credential for this project.',
      candidates: MEANT,
      permitted: MEANT,
      alternative: { model: 'sandbox-free', provider: 'sandbox', nearness: 'same modalities' },
    });
  });

  it("knows the organization's own models", async () => {
    const provider = await made('custom-providers', {
      name: 'acme',
      baseUrl: 'https://models.example/v1',
      keyless: true,
    });
    await made('custom-models', { customProviderId: provider, model: 'house/own' });
    const answer = await evaluate({ key: ID.developerKey, request: { model: 'house/own', provider: 'acme' } });
    await server.request('DELETE', `/v1/master/custom-providers/${provider}`);
    expect(answer).toMatchObject({ outcome: 'permit', candidates: ['acme/house/own'], withoutCredential: [] });
  });

  it('lets developers try new rules on their own key', async () => {
    const rules = [{ ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } }];
    const body = { key: ID.developerKey, rules, request: { model: 'sandbox-free' } };
    expect(await evaluate(body, server.tokens.developer)).toMatchObject({ outcome: 'deny' });
  });
});

describe('POST /v1/master/policy/diff', () => {
  it('is exactly what drafts would change, for which keys, by which rules', async () => {
    const body = {
      rules: [
        { id: ruleId, remove: true },
        { key: ID.ownerKey, ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } },
      ],
    };
    const developers = [
      { scope: 'key', id: ID.developerKey, name: "The developer's" },
      { scope: 'member', id: ID.developer, name: 'developer@example.com' },
    ];
    const answer = await server.request('POST', '/v1/master/policy/diff', { body });
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual({
      status: 200,
      body: {
        gained: 2,
        lost: MODELS.length,
        withoutCredential: { gained: 0, lost: OTHERS },
        flips: [
          {
            change: 'lost',
            holders: [{ scope: 'key', id: ID.ownerKey, name: "The owner's" }],
            mappings: MODELS.map((model) => `sandbox/${model}`),
            credential: true,
            addresses: ['10.0.0.0/8', 'unknown'],
            reason: 'rules',
            rules: [{ id: 'draft_2', scope: 'key', ruleType: 'deny_ip_cidrs', description: null, change: 'added' }],
          },
          {
            change: 'gained',
            holders: developers,
            mappings: ['sandbox/sandbox-paid'],
            credential: true,
            addresses: ANY,
            reason: 'rules',
            rules: [
              { id: ruleId, scope: 'member', ruleType: 'deny_models', description: 'No paid', change: 'removed' },
            ],
          },
        ],
        ifEnforced: { ...NOTHING, flips: [] },
        changedRules: 2,
        warnings: [],
      },
    });
  });

  it('names what nobody can call if it is asked to', async () => {
    const body = { rules: [{ key: ID.ownerKey, ruleType: 'deny_models', ruleValue: { models: ['gpt-5'] } }] };
    const counted = { gained: 0, lost: 0, withoutCredential: { gained: 0, lost: MEANT.length } };
    const diff = async (query: string): Promise<unknown> =>
      JSON.parse((await server.request('POST', `/v1/master/policy/diff${query}`, { body })).text);
    expect(await diff('')).toEqual({
      ...counted,
      flips: [],
      ifEnforced: { ...NOTHING, flips: [] },
      changedRules: 1,
      warnings: [],
    });
    expect(await diff('?withoutCredential=1')).toMatchObject({
      ...counted,
      flips: [{ mappings: MEANT, credential: false }],
    });
  });

  it('warns of names that nothing has, as the write of the rule would, and names the nearest', async () => {
    const rules = [
      { key: ID.ownerKey, ruleType: 'deny_models', ruleValue: { models: ['sandbox-piad', 'sandbox-paid'] } },
      { organization: true, ruleType: 'deny_providers', ruleValue: { providers: ['opnai'] }, mode: 'report' },
    ];
    const warnings = [
      '/rules/0: "sandbox-piad" is not the name of a model in the catalogue; did you mean `sandbox-paid`?',
      '/rules/1: "opnai" is not a provider in the catalogue; did you mean `openai`?',
    ];
    const asked = async (path: string, body: object): Promise<unknown> =>
      JSON.parse((await server.request('POST', `/v1/master/policy/${path}`, { body })).text);
    expect(await asked('diff', { rules })).toMatchObject({ warnings });
    const request = { model: 'sandbox-free' };
    expect(await asked('evaluate', { key: ID.developerKey, rules, request })).toMatchObject({ warnings });
  });

  it('shows what a rule in mode report would change if it were enforced', async () => {
    const rules = [
      { key: ID.ownerKey, ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] }, mode: 'report' },
    ];
    const answer = await server.request('POST', '/v1/master/policy/diff', { body: { rules } });
    expect(JSON.parse(answer.text)).toMatchObject({
      ...NOTHING,
      flips: [],
      changedRules: 1,
      ifEnforced: {
        gained: 0,
        lost: 1,
        flips: [{ change: 'lost', mappings: ['sandbox/sandbox-free'], rules: [{ id: 'draft_1', change: 'changed' }] }],
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

describe('GET /v1/master/policy/bundle', () => {
  it('shows the policy in force, where none is from elsewhere', async () => {
    expect(await outcome(server.request('GET', '/v1/master/policy/bundle'))).toEqual({
      status: 200,
      body: {
        policy: {
          digest: policyInForce.bundle.digest,
          revision: null,
          origin: 'installation',
          activatedAt: '2026-11-24T00:00:00.000Z',
          checkedAt: null,
          refusal: null,
        },
        history: [],
      },
    });
  });
});
