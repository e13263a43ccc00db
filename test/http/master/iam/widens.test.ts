// A change of a rule says exactly what it newly permits, and can be refused (policy/README.md, "Writing a rule").
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validateRuleChangeAnswer } from '../../../../src/generated/validators.js';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

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

  it('counts the other scopes: what the member may not, the key does not newly reach', async () => {
    const member = await make(MEMBER, { ruleType: 'allow_models', ruleValue: { models: ['sandbox/sandbox-free'] } });
    const rule = await make(KEY, { ruleType: 'deny_models', ruleValue: { models: ['*'] } });
    const { widens } = await widened(rule, { status: 'inactive' });
    expect(widens?.cells.map(({ mapping }) => mapping)).toEqual(['sandbox/sandbox-free']);
    await Promise.all([member, rule].map(remove));
  });
});
