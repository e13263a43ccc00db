import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReplayReport } from '../../../../src/generated/types.ts';
import { readWorld } from '../../../../src/workbench/world/world.ts';
import { catalog, ID, startMs } from '../../../admin/tenants.ts';
import { logDecision } from '../../../support/logged-decisions.ts';
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

describe('POST /v1/master/policy/replay', () => {
  it('judges the decisions of the organization by the rules of now, of then and of a draft', async () => {
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
    [{ groupBy: ['team'] }, '/groupBy/0', '/groupBy/0 ("team") must be one of key, member, rule, model.'],
    [{ from: '2026-02-01' }, '/from', '/from must lie before /to.'],
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
