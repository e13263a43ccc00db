import { describe, expect, test } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import {
  deleteRule,
  getRule,
  insertRule,
  listRules,
  type NewRule,
  type RuleRecord,
  updateRule,
} from '../../../src/store/rules/rules.ts';
import { insertKey } from '../../../src/store/tenants/key-records.ts';
import { findNames } from '../../../src/store/tenants/tenants.ts';
import { addTenant, newKey, START, storeWithTenant } from '../fixture.ts';

/** Stands in for the compiler of admin/: enough to see which rules it was given. */
const compile = (rules: readonly RuleRecord[]): string =>
  JSON.stringify(rules.map(({ ruleType, status, ruleValue }) => [ruleType, status, ruleValue]));

const newRule = (changes: Partial<NewRule> = {}): NewRule => ({
  id: newId('rule'),
  ruleType: 'deny_ip_cidrs',
  ruleValue: { ipCidrs: ['10.1.2.3/8'] },
  mode: 'enforce',
  status: 'active',
  description: null,
  ...changes,
});

const missing = expect.objectContaining({ status: 404, code: 'not_found' });

async function setUp() {
  const { store, clock, tenant } = await storeWithTenant();
  const { organizationId, keyId, memberId } = tenant;
  const insert = (subjectId: string, rule = newRule()) =>
    store.write((db, now) => insertRule(db, organizationId, subjectId, rule, compile, now));
  const text = async (subjectId: string) =>
    (await store.subjectRules(organizationId, [subjectId])).get(subjectId)?.text;
  const revision = () => store.ruleRevision(organizationId);
  return { store, clock, tenant, organizationId, keyId, memberId, insert, text, revision };
}

test('the name of a rule is its description, for its own organization alone', async () => {
  const { store, organizationId, keyId, insert } = await setUp();
  const other = await addTenant(store);
  const called = await insert(keyId, newRule({ description: 'Office only' }));
  const nameless = await insert(keyId, newRule());
  const ids = [called.id, nameless.id, newId('rule')];
  expect(await store.read((db) => findNames(db, organizationId, ids))).toEqual(new Map([[called.id, 'Office only']]));
  expect(await store.read((db) => findNames(db, other.organizationId, ids))).toEqual(new Map());
});

describe('the compiled rules of subjects', () => {
  test('are those of no rules for a new organization, member and key', async () => {
    const { store, organizationId, memberId, keyId } = await setUp();
    const none = { text: '{"enforce":{}}', stored: '{"enforce":{}}' };
    expect(await store.subjectRules(organizationId, [organizationId, memberId, keyId])).toEqual(
      new Map([organizationId, memberId, keyId].map((id) => [id, none])),
    );
  });

  test('of a subject that the organization does not have are an error, never a pass', async () => {
    const { store, organizationId } = await setUp();
    const other = await addTenant(store);
    await expect(store.subjectRules(organizationId, [organizationId, newId('key')])).rejects.toThrow('has no subject');
    await expect(store.subjectRules(organizationId, [other.keyId])).rejects.toThrow('has no subject');
  });

  test('follow every write of a rule, in the order of the rules, and raise the revision', async () => {
    const { store, organizationId, keyId, memberId, insert, text, revision } = await setUp();
    const first = await insert(keyId, newRule({ id: `rule_${'1'.repeat(32)}` }));
    const second = newRule({ id: `rule_${'2'.repeat(32)}`, ruleType: 'allow_models', ruleValue: {} });
    await insert(keyId, second);
    expect([await text(keyId), await revision()]).toEqual([
      '[["deny_ip_cidrs","active",{"ipCidrs":["10.1.2.3/8"]}],["allow_models","active",{}]]',
      2,
    ]);

    await store.write((db, now) =>
      updateRule(db, organizationId, keyId, first.id, { status: 'inactive' }, compile, now),
    );
    expect([await text(keyId), await revision()]).toEqual([
      '[["deny_ip_cidrs","inactive",{"ipCidrs":["10.1.2.3/8"]}],["allow_models","active",{}]]',
      3,
    ]);

    await store.write((db) => deleteRule(db, organizationId, keyId, first.id, compile));
    expect([await text(keyId), await revision()]).toEqual(['[["allow_models","active",{}]]', 4]);
    expect(await text(memberId)).toBe('{"enforce":{}}');
  });

  test('stay as they were when the rules cannot be compiled', async () => {
    const { store, organizationId, keyId, text, revision } = await setUp();
    const fail = (): string => {
      throw new Error('Cannot compile.');
    };
    const write = store.write((db, now) => insertRule(db, organizationId, keyId, newRule(), fail, now));
    await expect(write).rejects.toThrow('Cannot compile.');
    expect([await text(keyId), await revision()]).toEqual(['{"enforce":{}}', 0]);
    expect(await store.read((db) => listRules(db, organizationId, keyId))).toEqual([]);
  });

  test('are found for a key made later', async () => {
    const { store, tenant, insert, text } = await setUp();
    const key = newKey(tenant);
    await store.write((db, now) => insertKey(db, key, now));
    await insert(key.id, newRule({ ruleType: 'allow_models', ruleValue: {} }));
    expect(await text(key.id)).toBe('[["allow_models","active",{}]]');
  });
});

describe('rules', () => {
  test.each([
    ['organization', 'organizationId'],
    ['member', 'memberId'],
    ['key', 'keyId'],
  ] as const)('of the %s are read back whole, in their scope', async (scope, subject) => {
    const { store, organizationId, insert, ...tenant } = await setUp();
    const subjectId = { organizationId, ...tenant }[subject];
    const rule = newRule({ mode: 'report', description: 'Office' });
    const written = await insert(subjectId, rule);
    const reports = { reportsSince: START, reportRevision: 1, wouldDeny: 0, wouldAllow: 0, lastSeenAt: null };
    const managed = { managedBy: null, managedName: null };
    const stored = { organizationId, subjectId, scope, ...managed, createdAt: START, updatedAt: START };
    expect(written).toEqual({ ...rule, ...stored, ...reports });
    expect(await store.read((db) => listRules(db, organizationId, subjectId))).toEqual([written]);
  });

  test('are changed in what is named, and in nothing else', async () => {
    const { store, clock, organizationId, keyId, insert } = await setUp();
    const rule = await insert(keyId);
    clock.advance(1000);
    const changes = {
      ruleType: 'allow_models',
      ruleValue: { models: ['a'] },
      mode: 'report',
      description: 'New',
    } as const;
    const changed = await store.write((db, now) =>
      updateRule(db, organizationId, keyId, rule.id, changes, compile, now),
    );
    const reports = { reportsSince: START + 1000, reportRevision: 2 };
    expect(changed).toEqual({ ...rule, ...changes, ...reports, updatedAt: START + 1000 });
    const cleared = await store.write((db, now) =>
      updateRule(db, organizationId, keyId, rule.id, { description: null }, compile, now),
    );
    expect(cleared).toEqual({ ...changed, description: null });
  });

  test('of an unknown subject, of another subject or of another organization are 404, and nothing changes', async () => {
    const { store, organizationId, keyId, memberId, insert, revision } = await setUp();
    const other = await addTenant(store);
    const rule = await insert(keyId);
    for (const [organization, subject] of [
      [organizationId, memberId],
      [organizationId, newId('key')],
      [other.organizationId, keyId],
      [other.organizationId, other.keyId],
    ] as const) {
      await expect(store.read((db) => getRule(db, organization, subject, rule.id))).rejects.toEqual(missing);
      const update = store.write((db, now) => updateRule(db, organization, subject, rule.id, {}, compile, now));
      await expect(update).rejects.toEqual(missing);
      const remove = store.write((db) => deleteRule(db, organization, subject, rule.id, compile));
      await expect(remove).rejects.toEqual(missing);
    }
    await expect(insert(newId('key'))).rejects.toEqual(missing);
    await expect(insert(other.keyId)).rejects.toEqual(missing);
    expect([await store.read((db) => listRules(db, organizationId, keyId)), await revision()]).toEqual([[rule], 1]);
  });
});
