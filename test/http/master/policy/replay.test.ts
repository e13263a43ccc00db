import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReplayReport } from '../../../../src/generated/types.ts';
import { createPdp } from '../../../../src/policy/pdp.ts';
import { readWorld } from '../../../../src/workbench/world/world.ts';
import { catalog, ID, startMs } from '../../../admin/tenants.ts';
import { logDecision } from '../../../support/logged-decisions.ts';
import {
  archiveOf,
  bundleFiles,
  compiled,
  moduleThat,
  signed,
  signingKey,
  TRAP,
} from '../../../support/policy-bundles.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
let ruleId: string;
/** Of the owner's key: two permitted calls and a denied one; of the developer's, a permitted one; a foreign one. */
let decisions: readonly string[];

const HOUR = 3_600_000;
const PATH = '/v1/master/policy/replay';

beforeAll(async () => {
  server = await startManagementServer();
  const body = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] }, description: 'No paid' };
  const { text } = await server.request('POST', `/v1/master/keys/${ID.ownerKey}/iam`, { body });
  ruleId = /rule_[0-9a-f]{32}/.exec(text)?.[0] ?? '';
  decisions = await server.store.write((db) => {
    const world = readWorld(db, { catalog, servedProviders: new Set(['sandbox']) });
    const calls = [
      [ID.ownerKey, 'sandbox-slow'],
      [ID.ownerKey, 'sandbox-slow'],
      [ID.ownerKey, 'sandbox-paid'],
      [ID.developerKey, 'sandbox-slow'],
      [ID.foreignKey, 'sandbox-slow'],
    ] as const;
    return calls.map(([keyId, model], place) =>
      logDecision(db, world, { keyId, model, time: startMs - (5 - place) * HOUR }),
    );
  });
});
afterAll(() => server.close());

const replay = (body: object, token = server.tokens.owner) => server.request('POST', PATH, { body, token });

const NO_SLOW = {
  organization: true,
  ruleType: 'deny_models',
  ruleValue: { models: ['sandbox-slow'] },
  description: 'Fast',
};
const { organization: _, ...NO_SLOW_RULE } = NO_SLOW;
const NOTHING = { denied: 0, permitted: 0, widened: 0, narrowed: 0 };

const same = (by: ReplayReport['by'], count: number) => ({
  by,
  policyRevision: expect.stringMatching(/^[0-9a-f]{12}\.1$/),
  from: '2026-01-24T12:00:00.000Z',
  to: '2026-01-31T12:00:00.000Z',
  decisions: count,
  unchanged: count,
  changed: NOTHING,
  unjudged: [],
  otherPolicies: [],
  withoutFacts: 0,
  recorded: by === 'recorded' ? { identical: count, different: 0, differences: [] } : null,
  groupBy: ['key', 'member', 'rule', 'model'],
  groups: [],
  moreGroups: 0,
  rules: [],
  warnings: [],
});

/** What the draft would change. */
const drafted = () => ({
  ...same('draft', 4),
  unchanged: 1,
  changed: { ...NOTHING, denied: 3 },
  groups: [
    {
      change: 'denied',
      key: { id: ID.ownerKey, name: "The owner's" },
      member: { id: ID.owner, name: 'owner@example.com' },
      model: 'sandbox-slow',
      ruleIds: ['draft_1'],
      decisions: 2,
      examples: [decisions[0]],
    },
    {
      change: 'denied',
      key: { id: ID.developerKey, name: "The developer's" },
      member: { id: ID.developer, name: 'developer@example.com' },
      model: 'sandbox-slow',
      ruleIds: ['draft_1'],
      decisions: 1,
      examples: [decisions[3]],
    },
  ],
  rules: [{ id: 'draft_1', scope: 'organization', ruleType: 'deny_models', description: 'Fast' }],
});

/** What something else than the draft would change, which denies the same calls by these rules. */
const denied = (by: ReplayReport['by'], ...rules: ReplayReport['rules']) => ({
  ...drafted(),
  by,
  groups: drafted().groups.map((group) => ({ ...group, ruleIds: rules.map(({ id }) => id) })),
  rules,
});

const FOLDER = { organization: { rules: { 'no-slow': NO_SLOW_RULE } } };

/** A bundle of test/fixtures/policy, as the request takes it. */
const bundle = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/policy/${name}.tar.gz`, import.meta.url), 'base64');

describe('POST /v1/master/policy/replay', () => {
  it('judges the decisions of the organization under the current rules, of then and of a draft', async () => {
    const reportOf = async (body: object): Promise<unknown> => JSON.parse((await replay(body)).text);
    expect(await reportOf({})).toEqual(same('current', 4));
    expect(await reportOf({ recorded: true })).toEqual(same('recorded', 4));
    expect(await reportOf({ rules: [NO_SLOW] })).toEqual(drafted());
    expect(await reportOf({ rules: [{ id: ruleId, remove: true }], keyId: ID.ownerKey, groupBy: ['rule'] })).toEqual({
      ...same('draft', 3),
      unchanged: 2,
      changed: { ...NOTHING, permitted: 1 },
      groupBy: ['rule'],
      groups: [
        {
          ...{ change: 'permitted', key: null, member: null, model: null },
          ...{ ruleIds: [ruleId], decisions: 1, examples: [decisions[2]] },
        },
      ],
      rules: [{ id: ruleId, scope: 'key', ruleType: 'deny_models', description: 'No paid' }],
    });
    const { headers } = await replay({});
    expect([headers.get('content-type'), headers.get('cache-control')]).toEqual([
      'application/json; charset=utf-8',
      'no-store',
    ]);
  });

  it('judges by a policy folder on the current rules, with its warnings', async () => {
    const ruleValue = { models: ['sandbox-slow', 'sandbox-piad'] };
    const folder = { organization: { rules: { 'no-slow': { ...NO_SLOW_RULE, ruleValue } } } };
    const rule = { id: 'no-slow', scope: 'organization', ruleType: 'deny_models', description: 'Fast' } as const;
    expect(JSON.parse((await replay({ folder: FOLDER })).text)).toEqual(denied('folder', rule));
    expect(JSON.parse((await replay({ folder })).text)).toEqual({
      ...denied('folder', rule),
      warnings: [
        '/folder/organization/rules/no-slow: "sandbox-piad" is not the name of a model in the catalogue; did you mean `sandbox-paid`?',
      ],
    });
    expect(JSON.parse((await replay({})).text)).toEqual(same('current', 4));
  });

  it('judges by a bundle, which may be of anyone, and survives what it does', async () => {
    const own = createPdp().bundleDigest;
    const late = bundle('late');
    const rule = {
      id: 'no-slow',
      scope: 'custom',
      ruleType: 'deny_custom',
      description: 'nothing slow',
    } as const;
    const report = {
      unchanged: 0,
      unjudged: [{ reason: 'failed', decisions: 1, examples: [decisions[2]] }],
      otherPolicies: [{ digest: own, decisions: 3 }],
      withoutFacts: 3,
    };
    const { status, text, headers } = await replay({ bundle: late });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({ ...denied('current', rule), ...report });
    expect(headers.get('x-policy-revision')).toBe(JSON.parse(text).policyRevision);
    expect(headers.get('x-policy-revision')).not.toContain(own.slice(0, 12));
    const { keyId, model } = { keyId: ID.developerKey, model: 'sandbox-slow' };
    for (const body of [{ folder: FOLDER }, { recorded: true }, { rules: [NO_SLOW] }]) {
      const { by, changed } = JSON.parse((await replay({ ...body, bundle: late, keyId, model })).text);
      expect([by, changed.denied]).toEqual([Object.keys(body)[0] === 'rules' ? 'draft' : Object.keys(body)[0], 1]);
    }
    expect(JSON.parse((await replay({})).text)).toEqual(same('current', 4));
  });

  it.each<[string, Parameters<typeof archiveOf>[0], string]>([
    [
      'that fails the self-test',
      { 'policy.wasm': compiled('permit-all') },
      'It fails the self-test: deny_models {"models":["swift-1"]} does not deny for an organization.',
    ],
    ['that traps', { 'policy.wasm': moduleThat(TRAP) }, 'The compiled policy cannot be used. unreachable.'],
    [
      'that takes all memory in its trial',
      { 'policy.wasm': compiled('endless') },
      'It fails the self-test: The policy could not be evaluated. opa_malloc: failed.',
    ],
  ])('refuses a bundle %s', async (_, files, message) => {
    const archive = archiveOf({ ...bundleFiles('next'), ...files }).toString('base64');
    expect(await outcome(replay({ bundle: archive }))).toEqual({
      status: 400,
      body: refused('invalid_request', `/bundle is refused: ${message}`, '/bundle'),
    });
  });

  it('judges by a bundle whose signature nobody knows', async () => {
    const archive = archiveOf(signed(bundleFiles('next'), signingKey())).toString('base64');
    expect(JSON.parse((await replay({ bundle: archive })).text)).toEqual(same('current', 4));
  });

  it('refuses developers a folder and a bundle', async () => {
    const forbidden = {
      status: 403,
      body: refused('permission_denied', 'Developers can only manage their own keys.'),
    };
    for (const body of [{ folder: FOLDER }, { bundle: bundle('late') }]) {
      expect(await outcome(replay(body, server.tokens.developer))).toEqual(forbidden);
    }
  });

  it('takes a part of the log', async () => {
    const found = async (body: object) => JSON.parse((await replay(body)).text).decisions;
    expect(await found({ memberId: 'developer@example.com' })).toBe(1);
    expect(await found({ model: 'sandbox-paid' })).toBe(1);
    expect(await found({ from: '2026-01-31T08:00:00Z', to: '2026-01-31T10:00:00Z' })).toBe(2);
    expect(await found({ to: '2026-01-30' })).toBe(0);
  });

  it('lets developers replay what their own keys did, and no draft', async () => {
    const { developer } = server.tokens;
    expect(JSON.parse((await replay({ recorded: true }, developer)).text)).toEqual(same('recorded', 1));
    expect(await outcome(replay({ rules: [NO_SLOW] }, developer))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only manage their own keys.'),
    });
    expect(await outcome(replay({ keyId: ID.ownerKey }, developer))).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such key.'),
    });
    expect(await outcome(replay({ memberId: ID.owner }, developer))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only see the calls of their own keys.'),
    });
  });

  it.each([
    [{ recorded: 1 }, '/recorded', '/recorded (1) must be of type boolean.'],
    [{ rules: [] }, '/rules', '/rules must hold at least one entry.'],
    [{ rules: [{ id: 'rule_1', remove: true }], recorded: true }, '/rules', '/rules are not judged with /recorded.'],
    [{ rules: [{ id: 'rule_1', remove: true }] }, '/rules/0/id', '/rules/0/id ("rule_1") is not an active rule.'],
    [{ folder: { keys: {} }, recorded: true, bundle: 'x' }, '/folder', '/folder is not judged with /recorded.'],
    [{ folder: {}, rules: [NO_SLOW] }, '/folder', '/folder is not judged with /rules.'],
    [
      { folder: { keys: { nobody: { rules: { a: NO_SLOW_RULE } } } } },
      '/folder/keys/nobody',
      '/folder/keys/nobody: no key has this description.',
    ],
    [
      { folder: { organization: { rules: { a: { ruleType: 'deny_models', ruleValue: { models: [] } } } } } },
      '/folder/organization/rules/a/ruleValue/models',
      '/folder/organization/rules/a/ruleValue/models must hold at least one entry.',
    ],
    [
      { folder: { source: '' } },
      '/folder/source',
      '/folder/source ("") must be at most 128 letters, digits and . _ : @ / -, the first of them a letter or a digit.',
    ],
    [{ bundle: 5 }, '/bundle', '/bundle (5) must be of type string.'],
    [{ bundle: 'hello' }, '/bundle', '/bundle is refused: Not a gzip archive, or truncated.'],
    [{ groupBy: ['team'] }, '/groupBy/0', '/groupBy/0 ("team") must be one of key, member, rule, model.'],
    [{ from: '2026-02-01' }, '/from', '/from must lie before now, the default of /to.'],
    [
      { from: 'yesterday' },
      '/from',
      '/from ("yesterday") must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z.',
    ],
  ])('refuses %j', async (body, param, message) => {
    expect(await outcome(replay(body))).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });
});

interface SentEvent {
  readonly name: string;
  readonly data: unknown;
}

async function streamed(body: object): Promise<{ status: number; type: string | null; events: SentEvent[] }> {
  const response = await fetch(`${server.origin}${PATH}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.tokens.owner}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const text = await response.text();
  const events = [...text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm)].map(([, name = '', data = '']) => ({
    name,
    data: JSON.parse(data),
  }));
  return { status: response.status, type: response.headers.get('content-type'), events };
}

describe('a streamed replay', () => {
  it('tells how far it is, and ends with the report', async () => {
    const { status, type, events } = await streamed({ rules: [NO_SLOW] });
    expect({ status, type }).toEqual({ status: 200, type: 'text/event-stream; charset=utf-8' });
    expect(events.at(-1)).toEqual({ name: 'report', data: drafted() });
    for (const { name, data } of events.slice(0, -1)) {
      expect({ name, data }).toEqual({ name: 'progress', data: { done: expect.any(Number), all: expect.any(Number) } });
    }
  });

  it('is refused with a status while nothing was sent', async () => {
    const rules = [{ id: 'rule_1', remove: true }];
    expect(await outcome(replay({ stream: true, rules }))).toEqual({
      status: 400,
      body: refused('invalid_request', '/rules/0/id ("rule_1") is not an active rule.', '/rules/0/id'),
    });
  });
});
