import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ID, START, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';
import { addRule, REQUEST, storeDenied } from './logged.ts';

let server: ManagementServer;
let rule: string;
let ids: readonly [call: string, decision: string];
const whose = { keyId: ID.ownerKey, memberId: ID.owner };

beforeEach(async () => {
  server = await startManagementServer();
  rule = await addRule(server, ID.ownerKey, 'nothing large');
  server.clock.advance(1000);
  await server.request('PATCH', `/v1/master/keys/${ID.ownerKey}/iam/${rule}`, { body: { description: 'renamed' } });
  ids = await storeDenied(server, startMs + 500, { rule, ...whose });
});
afterEach(() => server.close());

async function get(path: string, token = server.tokens.owner) {
  const { status, text, headers } = await server.request('GET', `/v1/master/${path}`, { token });
  return { status, body: JSON.parse(text), cache: headers.get('cache-control') };
}

const entry = () => ({
  id: ids[1],
  callId: ids[0],
  timestamp: '2026-01-31T12:00:00.500Z',
  requestId: REQUEST,
  clientRequestId: 'my-own-1',
  projectId: ID.project,
  keyId: ID.ownerKey,
  memberId: ID.owner,
  action: 'chat',
  tool: null,
  requestedModel: 'large',
  requestedBy: '192.0.2.1',
  outcome: 'deny',
  reason: 'deny_models',
  shadowOutcome: null,
  provider: null,
  model: null,
  statusCode: 403,
  errorCode: 'permission_denied',
  cost: '0',
});

describe('GET /v1/master/decisions', () => {
  it('lists decisions, newest first, page by page', async () => {
    const [, later] = await storeDenied(server, startMs + 900, { rule, ...whose });
    const first = await get('decisions?limit=1');
    expect(first).toEqual({
      status: 200,
      body: {
        decisions: [{ ...entry(), id: later, callId: expect.any(String), timestamp: '2026-01-31T12:00:00.900Z' }],
        nextCursor: expect.any(String),
      },
      cache: 'no-store',
    });
    expect((await get(`decisions?limit=1&cursor=${first.body.nextCursor}`)).body).toEqual({
      decisions: [entry()],
      nextCursor: null,
    });
  });

  it.each([
    ['keyId', () => ID.ownerKey, ID.developerKey],
    ['memberId', () => 'owner@example.com', ID.developer],
    ['requestId', () => REQUEST, `req_${'8'.repeat(32)}`],
    ['clientRequestId', () => 'my-own-1', 'my-own-2'],
    ['model', () => 'large', 'small'],
    ['outcome', () => 'deny', 'permit'],
    ['reason', () => 'deny_models', 'allow_models'],
    ['ruleId', () => rule, `rule_${'f'.repeat(32)}`],
    ['address', () => '::ffff:192.0.2.1', '192.0.2.2'],
    ['address', () => '192.0.2.0/24', '2001:db8::/32'],
    ['from', () => START, '2026-01-31T12:00:01Z'],
    ['to', () => '2026-01-31', START],
  ])('searches by %s', async (name, value, other) => {
    const search = async (wanted: string) => (await get(`decisions?${new URLSearchParams({ [name]: wanted })}`)).body;
    expect(await search(value())).toEqual({ decisions: [entry()], nextCursor: null });
    expect(await search(other)).toEqual({ decisions: [], nextCursor: null });
  });

  it('shows developers the decisions of their own keys alone', async () => {
    const [, own] = await storeDenied(server, startMs + 900, { rule, keyId: ID.developerKey, memberId: ID.developer });
    const { body } = await get('decisions', server.tokens.developer);
    expect(body.decisions.map(({ id }: { id: string }) => id)).toEqual([own]);
  });
});

describe('GET /v1/master/decisions/{id}', () => {
  it('shows all that led to it, with its rules as they were called then', async () => {
    const { status, body } = await get(`decisions/${ids[1]}`);
    const violation = { scope: 'key', effect: 'deny', kind: 'models', ruleIds: [rule], values: ['large'] };
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        decision: {
          ...entry(),
          message: `Access denied: model not allowed: large is denied by rule ${rule} (nothing large).`,
          path: 'gateway/authz/decision',
          bundles: { policy: { revision: 'b'.repeat(64) } },
          ruleRevision: 3,
          input: expect.objectContaining({ action: 'chat', subjects: [{ scope: 'key', id: ID.ownerKey }] }),
          violations: [{ ...violation, candidate: 'acme/large' }],
          shadow: null,
          denial: violation,
          dataDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
          rules: [
            {
              id: rule,
              scope: 'key',
              subjectId: ID.ownerKey,
              ruleType: 'deny_models',
              mode: 'enforce',
              description: 'nothing large',
              describedThen: true,
            },
          ],
          costDetails: null,
          attempts: null,
        },
      },
    });
    expect((await get(`decisions/${ids[0]}`)).body).toEqual(body);
  });

  it('has the present description of a rule of which the audit log knows nothing of that time', async () => {
    const [, early] = await storeDenied(server, startMs - 500, { rule, ...whose });
    expect((await get(`decisions/${early}`)).body.decision.rules).toMatchObject([
      { description: 'renamed', describedThen: false },
    ]);
  });

  it('names the policy folder that stated a rule then, not one that does so now', async () => {
    const { text } = await server.request('GET', `/v1/master/keys/${ID.ownerKey}/iam/${rule}`);
    const { ruleType, ruleValue } = JSON.parse(text).rule;
    server.clock.advance(1000);
    const body = { source: 'security', keys: { [ID.ownerKey]: { rules: { large: { ruleType, ruleValue } } } } };
    expect(await server.request('POST', '/v1/master/policy/apply', { body })).toMatchObject({ status: 200 });
    const [, later] = await storeDenied(server, startMs + 3000, { rule, ...whose });
    const rulesOf = async (id: string) => (await get(`decisions/${id}`)).body.decision.rules;
    expect(await rulesOf(later)).toMatchObject([{ id: rule, managedBy: { source: 'security', name: 'large' } }]);
    expect(await rulesOf(ids[1])).toEqual([expect.not.objectContaining({ managedBy: expect.anything() })]);
  });
});

describe('GET /v1/master/calls', () => {
  const call = () => {
    const { id: _, callId, timestamp, requestedBy, shadowOutcome: __, ...common } = entry();
    return {
      ...common,
      id: callId,
      decisionId: ids[1],
      createdAt: timestamp,
      settledAt: timestamp,
      state: 'denied',
      stream: false,
      address: requestedBy,
      cached: false,
      promptTokens: 0,
      completionTokens: 0,
      reasoningTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      usageEstimated: false,
      costDetails: null,
      attempts: null,
      timing: null,
    };
  };

  it('lists calls, and shows one by its id or that of its decision', async () => {
    expect((await get('calls?outcome=deny')).body).toEqual({ calls: [call()], nextCursor: null });
    for (const id of ids) expect((await get(`calls/${id}`)).body).toEqual({ call: call() });
  });
});
