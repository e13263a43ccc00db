// A rule that is made, changed or removed says exactly what that newly permits, and can be refused (policy/reference.md, "Writing a rule").
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RuleWidening } from '../../../../src/generated/types.ts';
import { validator } from '../../../../src/lib/schemas.ts';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

const validateRuleChangeAnswer = validator('RuleChangeAnswer');

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const KEY = `/v1/master/keys/${ID.developerKey}/iam`;
const MEMBER = `/v1/master/members/${ID.developer}/iam`;

async function make(path: string, body: object): Promise<string> {
  const { text, status } = await server.request('POST', path, { body });
  if (status !== 201) throw new Error(text);
  return `${path}/${JSON.parse(text).rule.id}`;
}

async function widened(rule: string, body: object) {
  const { text, status } = await server.request('PATCH', rule, { body });
  const answer: unknown = JSON.parse(text);
  if (status !== 200 || !validateRuleChangeAnswer(answer)) throw new Error(text);
  return answer;
}

const remove = (rule: string) => server.request('DELETE', rule);

describe('a changed rule', () => {
  it('tells who newly reaches what, from where, whatever the credential', async () => {
    const rule = await make(KEY, { ruleType: 'allow_models', ruleValue: { models: ['sandbox/sandbox-free'] } });
    const { widens, before } = await widened(rule, {
      ruleValue: { models: ['sandbox/sandbox-free', 'sandbox/sandbox-paid', 'openai/gpt-5'] },
    });
    expect(before.ruleValue).toEqual({ models: ['sandbox/sandbox-free'] });
    const everywhere = { addresses: ['0.0.0.0/0', '::/0', 'unknown'], moreAddresses: 0 };
    const holder = expect.objectContaining({ scope: 'key', id: ID.developerKey });
    expect(widens?.count).toBe(2);
    expect(widens?.cells.toSorted((a, b) => (a.mapping < b.mapping ? -1 : 1))).toEqual([
      { holder, mapping: 'openai/gpt-5', credential: false, ...everywhere },
      { holder, mapping: 'sandbox/sandbox-paid', credential: true, ...everywhere },
    ]);
    await remove(rule);
  });

  it('tells of one address more as well', async () => {
    const ipCidrs = ['192.0.2.0/25'];
    const rule = await make(KEY, { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs } });
    const { widens } = await widened(rule, { ruleValue: { ipCidrs: [...ipCidrs, '192.0.2.128/32'] } });
    expect(widens?.cells[0]).toMatchObject({ addresses: ['192.0.2.128/32'], moreAddresses: 0 });
    await remove(rule);
  });

  it('that narrows, or does not change what is enforced, widens nothing', async () => {
    const rule = await make(KEY, { ruleType: 'deny_models', ruleValue: { models: ['sandbox/sandbox-free'] } });
    for (const body of [{ ruleValue: { models: ['sandbox/*'] } }, { description: 'Trial' }, { status: 'active' }]) {
      expect((await widened(rule, body)).widens).toEqual({ count: 0, cells: [] });
    }
    await remove(rule);
  });

  it('lists a hundred cells and counts the others', async () => {
    const rule = await make(MEMBER, { ruleType: 'deny_models', ruleValue: { models: ['*'] } });
    const { widens } = await widened(rule, { status: 'inactive' });
    expect(widens?.cells).toHaveLength(100);
    expect(widens?.count).toBeGreaterThan(500);
    await remove(rule);
  });

  it('is refused with failOnNewAccess, and stays as it was; what permits nothing new is not', async () => {
    const rule = await make(KEY, { ruleType: 'allow_providers', ruleValue: { providers: ['acme'] } });
    const body = { ruleValue: { providers: ['acme', 'sandbox'] }, failOnNewAccess: true };
    const refused = await server.request('PATCH', rule, { body });
    expect([refused.status, JSON.parse(refused.text).error]).toEqual([
      409,
      {
        message: expect.stringMatching(/^The change is refused: it would newly permit sandbox\//),
        type: 'invalid_request_error',
        param: null,
        code: 'new_access',
      },
    ]);
    expect(JSON.parse((await server.request('GET', rule)).text).rule.ruleValue).toEqual({ providers: ['acme'] });
    await widened(rule, { ruleValue: { providers: ['nobody'] }, failOnNewAccess: true });
    await remove(rule);
  });

  it('is removed together with many others at once, judged or not', async () => {
    const rules = await Promise.all(
      Array.from({ length: 12 }, () =>
        make(KEY, { ruleType: 'deny_models', ruleValue: { models: ['sandbox/sandbox-free'] } }),
      ),
    );
    const answers = await Promise.all(rules.map(remove));
    expect(answers.map(({ status }) => status)).toEqual(rules.map(() => 200));
    const widenings = answers.map(({ text }) => JSON.parse(text).widens);
    expect(widenings.every((widens) => widens === null || widens.count <= 1)).toBe(true);
    expect((await server.request('GET', KEY)).body).toEqual({ rules: [], nextCursor: null });
  });

  it('counts the other scopes: what the member may not, the key does not newly reach', async () => {
    const member = await make(MEMBER, { ruleType: 'allow_models', ruleValue: { models: ['sandbox/sandbox-free'] } });
    const rule = await make(KEY, { ruleType: 'deny_models', ruleValue: { models: ['*'] } });
    const { widens } = await widened(rule, { status: 'inactive' });
    expect(widens?.cells.map(({ mapping }) => mapping)).toEqual(['sandbox/sandbox-free']);
    await Promise.all([member, rule].map(remove));
  });
});

const NOTHING = { count: 0, cells: [] };
const PAID = 'sandbox/sandbox-paid';
const allow = (model: string) => ({ ruleType: 'allow_models', ruleValue: { models: [model] } });
const deny = { ruleType: 'deny_models', ruleValue: { models: [PAID] } };

/** Of each scope those who newly reach a mapping. */
const SCOPES = [
  ['keys', [ID.ownerKey]],
  ['members', [ID.developerKey, ID.developer]],
  ['groups', [ID.ownerKey]],
  ['organization', [ID.ownerKey, ID.developerKey, ID.owner, ID.admin, ID.developer]],
] as const;

async function pathOf(scope: (typeof SCOPES)[number][0]): Promise<string> {
  if (scope === 'keys') return `/v1/master/keys/${ID.ownerKey}/iam`;
  if (scope === 'members') return MEMBER;
  if (scope === 'organization') return '/v1/master/organization/iam';
  const { text } = await server.request('POST', '/v1/master/groups', { body: { name: `limited-${randomUUID()}` } });
  const group = `/v1/master/groups/${JSON.parse(text).group.id}`;
  await server.request('PATCH', group, { body: { addKeys: [ID.ownerKey] } });
  return `${group}/iam`;
}

/** The widening by one mapping that can be called from everywhere, its cells in the order of their holders. */
const widenedBy = (holderIds: readonly string[], widens: RuleWidening) => {
  const cell = { mapping: PAID, credential: true, addresses: ['0.0.0.0/0', '::/0', 'unknown'], moreAddresses: 0 };
  const byId = (a: { holder: { id: string } }, b: { holder: { id: string } }) => (a.holder.id < b.holder.id ? -1 : 1);
  return {
    expected: {
      count: holderIds.length,
      cells: holderIds
        .map((id) => ({
          ...cell,
          holder: { scope: id.startsWith('key') ? 'key' : 'member', id, name: expect.any(String) },
        }))
        .toSorted(byId),
    },
    given: { ...widens, cells: widens.cells.toSorted(byId) },
  };
};

const refusal = {
  message: expect.stringMatching(/^The change is refused: it would newly permit sandbox\/sandbox-paid for /),
  type: 'invalid_request_error',
  param: null,
  code: 'new_access',
};

describe.each(SCOPES)('a rule of %s', (scope, holders) => {
  it('that extends others says what it newly permits, and is refused with failOnNewAccess', async () => {
    const path = await pathOf(scope);
    const post = (body: object) => server.request('POST', path, { body });
    const first = await post({ ...allow('sandbox/sandbox-free'), failOnNewAccess: true });
    expect([first.status, JSON.parse(first.text).widens]).toEqual([201, NOTHING]);
    const before = (await server.request('GET', path)).text;

    const refused = await post({ ...allow(PAID), failOnNewAccess: true });
    expect([refused.status, JSON.parse(refused.text).error]).toEqual([409, refusal]);
    expect((await server.request('GET', path)).text).toBe(before);

    const made = await post(allow(PAID));
    const { rule, warnings, widens, ...more } = JSON.parse(made.text);
    const { given, expected } = widenedBy(holders, widens);
    expect([made.status, rule.ruleValue, warnings, given, more]).toEqual([
      201,
      allow(PAID).ruleValue,
      [],
      expected,
      {},
    ]);

    // Without it less is permitted.
    const removed = await server.request('DELETE', `${path}/${rule.id}?failOnNewAccess=true`);
    expect([removed.status, JSON.parse(removed.text)]).toEqual([200, { id: rule.id, deleted: true, widens: NOTHING }]);
    const last = await server.request('DELETE', `${path}/${JSON.parse(first.text).rule.id}?failOnNewAccess=true`);
    expect([last.status, JSON.parse(last.text).error.code]).toEqual([409, 'new_access']);
    await remove(`${path}/${JSON.parse(first.text).rule.id}`);
  });

  it('that denied says what its removal newly permits, which is refused with failOnNewAccess', async () => {
    const path = await pathOf(scope);
    const made = await server.request('POST', path, { body: { ...deny, failOnNewAccess: true } });
    expect([made.status, JSON.parse(made.text).widens]).toEqual([201, NOTHING]);
    const rule = `${path}/${JSON.parse(made.text).rule.id}`;
    const before = (await server.request('GET', path)).text;

    const refused = await server.request('DELETE', `${rule}?failOnNewAccess=true`);
    expect([refused.status, JSON.parse(refused.text).error]).toEqual([409, refusal]);
    expect((await server.request('GET', path)).text).toBe(before);

    const removed = await remove(rule);
    const { widens, ...answer } = JSON.parse(removed.text);
    const { given, expected } = widenedBy(holders, widens);
    expect([removed.status, answer, given]).toEqual([
      200,
      { id: JSON.parse(made.text).rule.id, deleted: true },
      expected,
    ]);
  });
});
