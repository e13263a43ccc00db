import { beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { createGroup } from '../../../src/admin/rules/groups.ts';
import {
  changeRule,
  createRule,
  deleteRule,
  getRule,
  listRules,
  readRuleCreation,
  readRuleDeletion,
  readRulePlan,
} from '../../../src/admin/rules/iam-rules.ts';
import { StaleRules } from '../../../src/admin/rules/judged-change.ts';
import { getRuleOwner, listRuleOwners, type RuleOwner } from '../../../src/admin/rules/rule-owner.ts';
import type { RuleWidening } from '../../../src/generated/types.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { prepareSubjectRules } from '../../../src/store/rules/rules.ts';
import { getOrganization, updateOrganization } from '../../../src/store/tenants/tenants.ts';
import { admin, catalog, cli, developer, ID, masked, owner, START, seededDatabase, startMs } from '../tenants.ts';

const write = { now: startMs, catalog, trustedProxies: [] };
const keyOf = (key: string): RuleOwner => ({ kind: 'key', key });
const memberOf = (member: string): RuleOwner => ({ kind: 'member', member });
const ORGANIZATION: RuleOwner = { kind: 'organization' };
const denySandbox = { ruleType: 'deny_providers', ruleValue: { providers: ['sandbox'] } };
const denyIp = { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } };

let db: Database;

beforeEach(() => {
  db = seededDatabase();
});

const compiled = (subjectId: string): unknown =>
  JSON.parse(prepareSubjectRules(db)(ID.organization, [subjectId]).get(subjectId)?.text ?? '');

const refusal = (status: number, message: string, param: string | null = null) =>
  expect.objectContaining({ status, message, param });

const add = (actor: Actor, to: RuleOwner, body: unknown = denySandbox) => createRule(db, actor, to, body, write);

describe('a written rule', () => {
  it('is compiled with its subject and raises the rule revision, all in one', () => {
    const before = getOrganization(db, ID.organization).ruleRevision;
    const { rule } = add(owner, keyOf(ID.developerKey));
    expect(compiled(ID.developerKey)).toEqual({
      enforce: { deny_providers: { rules: [rule.id], exact: { sandbox: [rule.id] } } },
    });
    changeRule(db, owner, keyOf(ID.developerKey), rule.id, { status: 'inactive' }, write);
    expect(compiled(ID.developerKey)).toEqual({ enforce: {} });
    changeRule(db, owner, keyOf(ID.developerKey), rule.id, { status: 'active', mode: 'report' }, write);
    expect(compiled(ID.developerKey)).toMatchObject({ enforce: {}, report_rules: { [rule.id]: true } });
    expect(deleteRule(db, owner, keyOf(ID.developerKey), rule.id, false, startMs)).toEqual({
      id: rule.id,
      deleted: true,
      widens: { count: 0, cells: [] },
    });
    expect(compiled(ID.developerKey)).toEqual({ enforce: {} });
    expect(getOrganization(db, ID.organization).ruleRevision).toBe(before + 4);
  });

  it('is shown with its owner, of any kind', () => {
    const { group } = createGroup(db, owner, { name: 'contractors' }, startMs);
    const ofGroup: RuleOwner = { kind: 'group', group: group.id };
    const rules = [keyOf(ID.ownerKey), memberOf('Developer@example.com'), ofGroup, ORGANIZATION].map(
      (to) => add(owner, to).rule,
    );
    const shown = { createdAt: START, updatedAt: START, ...denySandbox, status: 'active', mode: 'enforce' };
    const owners = { apiKeyId: null, memberId: null, groupId: null, organizationId: null };
    const nobody = { reportOnly: null, id: 'rule_new', description: null, managedBy: null, ...owners };
    expect(masked(rules)).toEqual([
      { ...shown, ...nobody, apiKeyId: ID.ownerKey, ownerName: "The owner's" },
      { ...shown, ...nobody, memberId: ID.developer, ownerName: 'developer@example.com' },
      { ...shown, ...nobody, groupId: 'grp_new', ownerName: 'contractors' },
      { ...shown, ...nobody, organizationId: ID.organization, ownerName: 'Example' },
    ]);
  });

  it('is judged as a whole when it is changed', () => {
    const to = keyOf(ID.ownerKey);
    const { id } = add(owner, to, { ruleType: 'deny_models', ruleValue: { models: ['sandbox/*'] } }).rule;
    const other = { ruleType: 'allow_models', ruleValue: { models: ['sandbox/*'] } };
    expect(changeRule(db, owner, to, id, other, write).rule).toMatchObject(other);
    const noValue = refusal(400, '/ruleValue is missing: another rule type needs a whole value.', '/ruleValue');
    expect(() => changeRule(db, owner, to, id, { ruleType: 'allow_providers' }, write)).toThrow(noValue);
    expect(() => changeRule(db, owner, to, id, { ruleValue: { providers: ['acme'] } }, write)).toThrow(
      refusal(400, '/ruleValue/providers is not a known field.', '/ruleValue/providers'),
    );
    expect(() => changeRule(db, owner, to, id, {}, write)).toThrow(
      refusal(400, 'The request body must hold at least one field.', ''),
    );
    expect(() => changeRule(db, owner, to, id, { owner: 'me' }, write)).toThrow(
      refusal(400, '/owner ("me") is not a known field.', '/owner'),
    );
    expect(getRule(db, owner, to, id, write).rule.ruleType).toBe('allow_models');
  });

  it('changes within its type field by field; null takes one away, and a list is replaced as a whole', () => {
    const to = keyOf(ID.ownerKey);
    const caps = { pricingType: 'paid', maxInputPrice: '2', maxOutputPrice: '8' };
    const { rule } = add(owner, to, { ruleType: 'allow_pricing', ruleValue: caps });
    const change = (ruleValue: object) => changeRule(db, owner, to, rule.id, { ruleValue }, write);
    const changed = change({ maxInputPrice: '3' });
    expect([changed.before, changed.rule.ruleValue]).toEqual([rule, { ...caps, maxInputPrice: '3' }]);
    expect(change({ maxOutputPrice: null, pricingType: null }).rule.ruleValue).toEqual({ maxInputPrice: '3' });
    expect(change({ maxInputPrice: '3', maxOutputPrice: null }).rule.ruleValue).toEqual({ maxInputPrice: '3' });
    expect(() => change({ maxInputPrice: null })).toThrow(
      refusal(400, '/ruleValue must hold at least one field.', '/ruleValue'),
    );
    const list = add(owner, to, { ruleType: 'deny_models', ruleValue: { models: ['a', 'b'] } }).rule;
    const models = { ruleValue: { models: ['c'] } };
    expect(changeRule(db, owner, to, list.id, models, write).rule.ruleValue).toEqual({ models: ['c'] });
  });

  it('is refused as new access unless it is known that its change permits nothing new', () => {
    const to = keyOf(ID.ownerKey);
    const { id } = add(owner, to).rule;
    const body = { status: 'inactive', failOnNewAccess: true };
    const { ruleRevision, matters, failOnNewAccess } = readRulePlan(db, owner, to, id, body);
    expect({ matters, failOnNewAccess }).toEqual({ matters: true, failOnNewAccess: true });
    const holder = { scope: 'key' as const, id: ID.ownerKey, name: 'CI' };
    const cell = { holder, mapping: 'sandbox/sandbox-free', credential: true, addresses: [], moreAddresses: 0 };
    const judge = (widens: RuleWidening | null) => () =>
      changeRule(db, owner, to, id, body, write, { ruleRevision, widens });
    expect(judge(null)).toThrow(refusal(409, 'The change is refused: what it would newly permit is not known.'));
    expect(judge({ count: 7, cells: [cell] })).toThrow(
      refusal(409, 'The change is refused: it would newly permit sandbox/sandbox-free for CI and 6 more.'),
    );
    add(owner, to);
    expect(judge({ count: 0, cells: [] })).toThrow(StaleRules);
    expect(getRule(db, owner, to, id, write).rule.status).toBe('active');
    expect(() => changeRule(db, owner, to, id, { failOnNewAccess: true }, write)).toThrow(
      refusal(400, 'The request body must hold at least one field of the rule.', ''),
    );
  });

  it('needs no judging where nothing that is enforced changes, or is only denied', () => {
    const to = keyOf(ID.ownerKey);
    const { id } = add(owner, to).rule;
    const matters = (body: object) => readRulePlan(db, owner, to, id, body).matters;
    expect([{ description: 'x' }, { mode: 'report' }, { ruleValue: { providers: ['x'] } }].map(matters)).toEqual([
      false,
      true,
      true,
    ]);
    changeRule(db, owner, to, id, { mode: 'report' }, write);
    expect([{ ruleValue: { providers: ['x'] } }, { mode: 'enforce' }].map(matters)).toEqual([false, false]);
  });

  it('needs judging where it, or its removal, may permit more', () => {
    const to = keyOf(ID.ownerKey);
    const allow = (...models: string[]) => ({ ruleType: 'allow_models', ruleValue: { models } });
    const creation = (body: object) => readRuleCreation(db, owner, to, body).matters;
    const deletion = (id: string) => readRuleDeletion(db, owner, to, id, false).matters;
    const report = { mode: 'report' };
    const inactive = { status: 'inactive' };

    const deny = add(owner, to).rule.id;
    const reported = add(owner, to, { ...denySandbox, ...report }).rule.id;
    add(owner, to, { ...allow('a'), ...report });
    add(owner, to, { ...allow('a'), ...inactive });
    expect([denySandbox, allow('b'), { ruleType: 'allow_tags', ruleValue: { tags: ['a'] } }].map(creation)).toEqual([
      false,
      false,
      false,
    ]);
    const first = add(owner, to, allow('a')).rule.id;
    expect([allow('b'), { ...allow('b'), ...report }, { ...allow('b'), ...inactive }].map(creation)).toEqual([
      true,
      false,
      false,
    ]);
    expect([deny, reported, first].map(deletion)).toEqual([true, false, true]);

    const second = add(owner, to, allow('b')).rule.id;
    expect([first, second].map(deletion)).toEqual([false, false]);
    const change = (body: object) => readRulePlan(db, owner, to, second, body).matters;
    expect([inactive, report, allow('c'), denySandbox].map(change)).toEqual([false, false, true, false]);
  });

  it('is written, or removed, as it was judged, and not where that has become another matter', () => {
    const to = keyOf(ID.ownerKey);
    const allow = (model: string) => ({ ruleType: 'allow_models', ruleValue: { models: [model] } });
    const first = readRuleCreation(db, owner, to, allow('a'));
    const judged = { ruleRevision: first.ruleRevision, widens: { count: 0, cells: [] } };
    const { id } = add(owner, to, allow('b')).rule;
    expect(() => createRule(db, owner, to, allow('a'), write, judged)).toThrow(StaleRules);
    expect(deleteRule(db, owner, to, id, false, startMs, { ruleRevision: 0, widens: null }).widens).toBeNull();
    expect(createRule(db, owner, to, allow('a'), write, judged).widens).toEqual({ count: 0, cells: [] });
  });

  it('counts against the bounds of its subject, its own old form apart', () => {
    const to = keyOf(ID.ownerKey);
    const prefixes = (count: number, text: string) => ({
      ruleType: 'deny_models',
      ruleValue: { models: Array.from({ length: count }, (_, index) => `${text}${index}*`) },
    });
    const { id } = add(owner, to, prefixes(50, 'a')).rule;
    expect(() => add(owner, to, prefixes(1, 'b'))).toThrow(expect.objectContaining({ status: 400 }));
    expect(() => changeRule(db, owner, to, id, prefixes(50, 'c'), write)).not.toThrow();
    expect(listRules(db, owner, to, { limit: 200 }).rules).toHaveLength(1);
  });
});

describe('the shape is judged before owner and plan, which are judged before bounds', () => {
  it('so a faulty rule of nobody is 400', () => {
    expect(() => add(owner, keyOf(ID.absent), { ruleType: 'deny_models' })).toThrow(
      refusal(400, '/ruleValue is missing.', '/ruleValue'),
    );
    expect(() => add(owner, keyOf(ID.absent))).toThrow(refusal(404, 'There is no such key.'));
  });

  it('and a rule of a playground or platform key 403', () => {
    expect(() => add(owner, keyOf(ID.playgroundKey))).toThrow(refusal(403, 'A playground key cannot be given rules.'));
    expect(() => add(owner, keyOf(ID.platformKey))).toThrow(refusal(403, 'A platform key cannot be given rules.'));
  });

  it('and a change or removal there 403 as well, before a rule is looked up', () => {
    const to = keyOf(ID.playgroundKey);
    const refused = refusal(403, 'A playground key cannot be given rules.');
    expect(() => changeRule(db, owner, to, ID.absentRule, { mode: 'report' }, write)).toThrow(refused);
    expect(() => deleteRule(db, owner, to, ID.absentRule, false, startMs)).toThrow(refused);
    expect(() => changeRule(db, owner, to, ID.absentRule, { mode: 'off' }, write)).toThrow(
      expect.objectContaining({ status: 400 }),
    );
  });
});

describe('an IP rule', () => {
  it('needs the enterprise plan to be written, and stays in force and deletable without', () => {
    const { id } = add(owner, ORGANIZATION, denyIp).rule;
    updateOrganization(db, ID.organization, { plan: 'pro' }, startMs);
    const refused = refusal(403, 'IP rules are part of the enterprise plan only.');
    expect(() => add(owner, ORGANIZATION, denyIp)).toThrow(refused);
    expect(() => changeRule(db, owner, ORGANIZATION, id, { description: 'x' }, write)).toThrow(refused);
    const other = add(owner, ORGANIZATION).rule;
    expect(() => changeRule(db, owner, ORGANIZATION, other.id, denyIp, write)).toThrow(refused);
    expect(compiled(ID.organization)).toHaveProperty('enforce.deny_ip_cidrs');
    expect(deleteRule(db, owner, ORGANIZATION, id, false, startMs)).toEqual({ id, deleted: true, widens: null });
  });
});

describe('by role', () => {
  it('an admin changes the rules of all but owners, which they may read', () => {
    expect(add(admin, memberOf(ID.developer)).rule.memberId).toBe(ID.developer);
    expect(add(admin, ORGANIZATION).rule.organizationId).toBe(ID.organization);
    const { id } = add(owner, memberOf(ID.owner)).rule;
    const refused = refusal(403, "An admin cannot change an owner's rules.");
    expect(() => add(admin, memberOf(ID.owner))).toThrow(refused);
    expect(() => changeRule(db, admin, memberOf(ID.owner), id, { mode: 'report' }, write)).toThrow(refused);
    expect(() => deleteRule(db, admin, memberOf(ID.owner), id, false, startMs)).toThrow(refused);
    expect(listRules(db, admin, memberOf(ID.owner), { limit: 50 }).rules).toHaveLength(1);
  });

  it('a developer changes the rules of their own keys alone', () => {
    expect(add(developer, keyOf(ID.developerKey)).rule.apiKeyId).toBe(ID.developerKey);
    expect(() => add(developer, keyOf(ID.ownerKey))).toThrow(refusal(404, 'There is no such key.'));
    const refused = refusal(403, 'Developers can only manage their own keys.');
    for (const to of [memberOf(ID.developer), ORGANIZATION]) {
      expect(() => add(developer, to)).toThrow(refused);
      expect(() => listRules(db, developer, to, { limit: 50 })).toThrow(refused);
    }
  });
});

describe('rules of others', () => {
  it('are not found: another organization’s, and those of another subject', () => {
    const { id } = add(owner, keyOf(ID.ownerKey)).rule;
    expect(() => add(owner, keyOf(ID.foreignKey))).toThrow(refusal(404, 'There is no such key.'));
    expect(() => add(owner, memberOf('foreigner@example.com'))).toThrow(refusal(404, 'There is no such member.'));
    const noRule = refusal(404, 'There is no such rule.');
    expect(() => getRule(db, owner, keyOf(ID.developerKey), id, write)).toThrow(noRule);
    expect(() => deleteRule(db, owner, keyOf(ID.developerKey), id, false, startMs)).toThrow(noRule);
  });
});

describe('the list of rules', () => {
  it('comes in pages, oldest first', () => {
    // Ids of one millisecond are in no order.
    const ids = [1, 2, 3].map(() => add(owner, ORGANIZATION).rule.id).sort();
    const first = listRules(db, owner, ORGANIZATION, { limit: 2 });
    expect(first.rules.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const second = listRules(db, owner, ORGANIZATION, { limit: 2, cursor: first.nextCursor ?? '' });
    expect(second).toMatchObject({ rules: [{ id: ids[2] }], nextCursor: null });
  });
});

describe('looking a rule up without its owner', () => {
  it('finds whose it is, and everyone who has any', () => {
    const owners = [ORGANIZATION, memberOf(ID.developer), keyOf(ID.ownerKey)];
    const ids = owners.map((to) => add(owner, to).rule.id);
    add(owner, ORGANIZATION);
    expect(ids.map((id) => getRuleOwner(db, cli, id))).toEqual(owners);
    expect(listRuleOwners(db, cli)).toEqual(owners);
    const elsewhere: Actor = { kind: 'cli', organizationId: ID.otherOrganization };
    expect(() => getRuleOwner(db, elsewhere, ids[0] ?? '')).toThrow(refusal(404, 'There is no such rule.'));
    expect(listRuleOwners(db, elsewhere)).toEqual([]);
  });
});
