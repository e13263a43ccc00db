// Calls of those who are in groups: every group must pass, and who is in one is known to the very next call and the next attempt.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { changeGroup, createGroup, deleteGroup } from '../../../src/admin/rules/groups.ts';
import { createRule } from '../../../src/admin/rules/iam-rules.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { bearer, JSON_TYPE } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(() => gateway.close());

/** As another process writes. */
const actor = (): Actor => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId });

function group(name: string, ...models: string[]): string {
  const { id } = createGroup(gateway.db, actor(), { name }, Date.now()).group;
  if (models.length > 0) {
    const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
    const world = { catalog, trustedProxies: [], now: Date.now() };
    const body = { ruleType: 'deny_models', ruleValue: { models }, description: `of ${name}` };
    createRule(gateway.db, actor(), { kind: 'group', group: id }, body, world);
  }
  return id;
}

const change = (id: string, body: object) => changeGroup(gateway.db, actor(), id, body, Date.now());

async function call(model: string, key = gateway.firstRun.gatewayKey): Promise<unknown> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  const headers = [bearer(key), JSON_TYPE] as const;
  const { status, json } = await send(gateway.origin, { method: 'POST', path: '/v1/chat/completions', headers, body });
  return status === 200 ? 200 : [status, Object(Object(json).error).message.replace(/rule_[0-9a-f]{32}/g, 'rule_1')];
}

const deniedBy = (name: string, model: string) => [
  403,
  `Access denied: model not allowed: ${model} is denied by rule rule_1 (of ${name}). This is a group IAM rule (${name}) set by the org admin.`,
];

describe('a group', () => {
  it('binds its keys and the keys of its members from the next call on, until they leave', async () => {
    const other = addKey(gateway);
    const id = group('contractors', 'sandbox-paid');
    expect(await call('sandbox-paid')).toBe(200);
    change(id, { addKeys: [gateway.keyId] });
    expect([await call('sandbox-paid'), await call('sandbox-free')]).toEqual([
      deniedBy('contractors', 'sandbox-paid'),
      200,
    ]);
    expect(await call('sandbox-paid', other.token)).toBe(200);
    change(id, { addMembers: [gateway.memberId], removeKeys: [gateway.keyId] });
    expect([await call('sandbox-paid'), await call('sandbox-paid', other.token)]).toEqual([
      deniedBy('contractors', 'sandbox-paid'),
      deniedBy('contractors', 'sandbox-paid'),
    ]);
    change(id, { removeMembers: [gateway.memberId] });
    expect(await call('sandbox-paid')).toBe(200);
  });

  it('that is deleted binds nobody', async () => {
    const id = group('contractors', 'sandbox-paid');
    change(id, { addKeys: [gateway.keyId] });
    expect(await call('sandbox-paid')).toEqual(deniedBy('contractors', 'sandbox-paid'));
    deleteGroup(gateway.db, actor(), id, false, Date.now());
    expect(await call('sandbox-paid')).toBe(200);
  });

  it('is one of several, judged by name; another name is another place and another sentence', async () => {
    const [first, second] = [group('beta', 'sandbox-paid'), group('alpha', 'sandbox-paid')];
    for (const id of [first, second]) change(id, { addKeys: [gateway.keyId], addMembers: [gateway.memberId] });
    expect(await call('sandbox-paid')).toEqual(deniedBy('alpha', 'sandbox-paid'));
    change(second, { name: 'gamma' });
    expect(await call('sandbox-paid')).toEqual(deniedBy('beta', 'sandbox-paid'));
  });

  it('is on record with the decision, and shown with its name', async () => {
    const id = group('contractors', 'sandbox-paid');
    change(id, { addKeys: [gateway.keyId] });
    await call('sandbox-paid');
    const headers = [bearer(gateway.firstRun.masterKey)] as const;
    const ask = async (path: string) => Object((await send(gateway.management, { method: 'GET', path, headers })).json);
    const [{ id: decisionId }, ...others] = (await ask(`/v1/master/decisions?groupId=${id}`)).decisions;
    expect(others).toEqual([]);
    const { decision } = await ask(`/v1/master/decisions/${decisionId}`);
    expect(decision.input.subjects).toEqual([
      { scope: 'organization', id: gateway.firstRun.organizationId },
      { scope: 'group', id },
      { scope: 'member', id: gateway.memberId },
      { scope: 'key', id: gateway.keyId },
    ]);
    const [violation] = decision.violations;
    expect([violation.scope, violation.group, decision.denial.group]).toEqual(['group', id, id]);
    expect(decision.message).toMatch(/ This is a group IAM rule \(contractors\) set by the org admin\.$/);
    expect(decision.rules).toMatchObject([{ scope: 'group', subjectId: id, groupName: 'contractors' }]);
  });
});
