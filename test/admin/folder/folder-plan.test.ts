// What a policy folder's apply does: which rule each entry means, what is refused, and that it is done whole or not at all.
import { beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/admin/audit/audit.ts';
import { appliedView, applyFolder, planView } from '../../../src/admin/folder/apply-folder.ts';
import { FolderFaults, type PlanOptions, readFolderPlan } from '../../../src/admin/folder/plan-folder.ts';
import { createGroup } from '../../../src/admin/rules/groups.ts';
import { changeRule, createRule, deleteRule, getRule, listRules } from '../../../src/admin/rules/iam-rules.ts';
import { StaleRules } from '../../../src/admin/rules/judged-change.ts';
import type { RuleOwner } from '../../../src/admin/rules/rule-owner.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import type { PolicyFolder } from '../../../src/generated/types.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { getOrganization, updateOrganization } from '../../../src/store/tenants/tenants.ts';
import { admin, catalog, developer, ID, owner, seededDatabase, startMs } from '../tenants.ts';

const ORGANIZATION: RuleOwner = { kind: 'organization' };
const KEY: RuleOwner = { kind: 'key', key: ID.ownerKey };
const write = { now: startMs, catalog, trustedProxies: [] };

const deny = (...models: string[]) => ({ ruleType: 'deny_models', ruleValue: { models } });
const FREE = { ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } };

let db: Database;
beforeEach(() => {
  db = seededDatabase();
});

const add = (to: RuleOwner, body: object): string => createRule(db, owner, to, body, write).rule.id;

const planOf = (folder: PolicyFolder, options: Partial<PlanOptions> = {}, actor = owner) =>
  readFolderPlan(db, actor, folder, { prune: false, ...options }, write);

const apply = (folder: PolicyFolder, options: Partial<PlanOptions> = {}) =>
  appliedView(applyFolder(db, owner, planOf(folder, options), { revision: '3f2a91c', now: startMs }), null);

/** `action name` of each change. */
const changes = (folder: PolicyFolder, options: Partial<PlanOptions> = {}): string[] =>
  planOf(folder, options).changes.map(({ action, name, subject }) => `${action} ${subject.scope} ${name}`);

const rulesOf = (to: RuleOwner) => listRules(db, owner, to, { limit: 200 }).rules;

const shortly = (to: RuleOwner) =>
  rulesOf(to).map(({ id, ruleValue, managedBy }) => ({ id, ruleValue, name: managedBy?.name ?? null }));

const faultsOf = (folder: PolicyFolder, options: Partial<PlanOptions> = {}, actor = owner): string[] => {
  try {
    planOf(folder, options, actor);
  } catch (error) {
    if (error instanceof FolderFaults) return error.faults.map(({ text }) => text);
    throw error;
  }
  return [];
};

describe('an apply', () => {
  it('makes the rules of every owner, and says so in them', () => {
    const folder = {
      source: 'git.example/security',
      organization: { rules: { 'free-only': FREE } },
      members: { 'Developer@example.com': { rules: { slow: { ...deny('sandbox-slow'), mode: 'report' } } } },
      keys: { "The owner's": { rules: { paid: { ...deny('sandbox-paid'), description: 'No' } } } },
    };
    const { changes: done, ...rest } = apply(folder);
    expect(rest).toEqual({
      applied: true,
      source: 'git.example/security',
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      prune: false,
      ruleRevision: 0,
      unchanged: 0,
      warnings: [],
      access: null,
    });
    const [rule] = rulesOf(KEY);
    expect(rule).toMatchObject({
      ...folder.keys["The owner's"].rules.paid,
      status: 'active',
      mode: 'enforce',
      managedBy: { source: 'git.example/security', name: 'paid' },
    });
    expect(done.map(({ action, owner: of, name }) => [action, of, name])).toEqual([
      ['add', { scope: 'organization', id: ID.organization, name: 'Example' }, 'free-only'],
      ['add', { scope: 'member', id: ID.developer, name: 'developer@example.com' }, 'slow'],
      ['add', { scope: 'key', id: ID.ownerKey, name: "The owner's" }, 'paid'],
    ]);
    expect(done.at(-1)).toMatchObject({
      ruleId: rule?.id,
      before: null,
      after: { description: 'No', mode: 'enforce' },
    });
  });

  it('changes nothing the second time, and writes nothing', () => {
    const folder = { organization: { rules: { a: FREE, b: deny('sandbox-slow') } } };
    apply(folder);
    const entries = db.all(build.selectFrom('audit').selectAll()).length;
    const { ruleRevision } = getOrganization(db, ID.organization);
    expect(apply(folder)).toMatchObject({ applied: true, changes: [], unchanged: 2, ruleRevision });
    expect(getOrganization(db, ID.organization).ruleRevision).toBe(ruleRevision);
    expect(db.all(build.selectFrom('audit').selectAll())).toHaveLength(entries);
  });

  it('keeps the id of a rule that keeps its name, whatever else of it changes', () => {
    apply({ organization: { rules: { a: FREE, b: deny('sandbox-slow') } } });
    const [first] = rulesOf(ORGANIZATION);
    const plan = planOf({ organization: { rules: { a: deny('sandbox-free'), b: deny('sandbox-slow') } } });
    expect(planView(plan, null)).toMatchObject({
      changes: [{ action: 'change', name: 'a', ruleId: first?.id }],
      unchanged: 1,
    });
    applyFolder(db, owner, plan, { now: startMs });
    expect(shortly(ORGANIZATION)[0]).toEqual({ id: first?.id, ruleValue: { models: ['sandbox-free'] }, name: 'a' });
  });

  it('removes what left the folder, of owners too that it no longer names, and nothing else', () => {
    const own = add(ORGANIZATION, deny('x'));
    apply({ source: 'other', organization: { rules: { theirs: deny('y') } } });
    apply({ organization: { rules: { a: FREE } }, keys: { [ID.ownerKey]: { rules: { b: FREE } } } });
    const folder = { organization: { rules: {} } };
    expect(changes(folder)).toEqual(['remove organization a', 'remove key b']);
    apply(folder);
    expect(shortly(ORGANIZATION).map(({ id, name }) => name ?? id)).toEqual([own, 'theirs']);
    expect(rulesOf(KEY)).toEqual([]);
  });

  it('with prune also removes what no folder states, of everyone; what another folder states stays', () => {
    add(ORGANIZATION, deny('x'));
    add(KEY, FREE);
    apply({ source: 'other', organization: { rules: { theirs: deny('y') } } });
    expect(changes({})).toEqual([]);
    expect(changes({}, { prune: true })).toEqual(['remove organization null', 'remove key null']);
    apply({}, { prune: true });
    expect(shortly(ORGANIZATION).map(({ name }) => name)).toEqual(['theirs']);
  });

  it('adopts a rule that does the same, first one in the same words, each once', () => {
    const ids = [
      add(ORGANIZATION, { ...deny('a', 'b'), description: 'one' }),
      add(ORGANIZATION, { ...deny('b', 'a'), description: 'two' }),
      add(ORGANIZATION, { ...deny('a', 'b'), mode: 'report' }),
    ];
    const folder = {
      organization: {
        rules: { first: { ...deny('a', 'b'), description: 'new' }, second: { ...deny('b', 'a'), description: 'two' } },
      },
    };
    expect(changes(folder)).toEqual(['adopt organization first', 'adopt organization second']);
    apply(folder);
    expect(shortly(ORGANIZATION)).toEqual([
      { id: ids[0], ruleValue: { models: ['a', 'b'] }, name: 'first' },
      { id: ids[1], ruleValue: { models: ['b', 'a'] }, name: 'second' },
      { id: ids[2], ruleValue: { models: ['a', 'b'] }, name: null },
    ]);
    expect(rulesOf(ORGANIZATION).map(({ description }) => description)).toEqual(['new', 'two', null]);
  });

  it('renames a rule of its own that does the same under another name, also where names change places', () => {
    apply({ organization: { rules: { a: deny('x'), b: deny('y') } } });
    const [x, y] = shortly(ORGANIZATION);
    expect(changes({ organization: { rules: { c: deny('x'), a: deny('z') } } })).toEqual([
      'add organization c',
      'change organization a',
      'remove organization b',
    ]);
    const folder = { organization: { rules: { c: deny('x'), b: deny('y') } } };
    expect(changes(folder)).toEqual(['rename organization c']);
    apply(folder);
    expect(shortly(ORGANIZATION)).toEqual([{ ...x, name: 'c' }, y]);
    apply({ organization: { rules: { b: deny('x'), c: deny('y') } } });
    expect(shortly(ORGANIZATION).map(({ name }) => name)).toEqual(['c', 'b']);
  });

  it('is done whole or not at all, and not on other rules than were planned for', () => {
    const plan = planOf({ organization: { rules: { a: FREE } }, keys: { [ID.ownerKey]: { rules: { b: FREE } } } });
    db.run(build.updateTable('keys').set({ deletedAt: startMs }).where('id', '=', ID.ownerKey));
    const attempt = (): unknown => db.transaction(() => applyFolder(db, owner, plan, { now: startMs }));
    expect(attempt).toThrow('There is no such key.');
    expect(rulesOf(ORGANIZATION)).toEqual([]);
    add(ORGANIZATION, deny('x'));
    expect(attempt).toThrow(StaleRules);
  });

  it('is in the audit log, with its source and revision, after an entry for each rule', () => {
    const before = add(ORGANIZATION, deny('x'));
    const { digest } = apply({ organization: { rules: { a: FREE } } }, { prune: true });
    const { entries } = listAudit(db, owner, { limit: 3 });
    expect(entries.map(({ action, target, before: was, after }) => [action, target.id, was, after])).toEqual([
      [
        'policy.apply',
        ID.organization,
        { id: ID.organization, name: 'policy', ruleRevision: 1 },
        {
          id: ID.organization,
          name: 'policy',
          ruleRevision: 2,
          revision: '3f2a91c',
          digest,
          prune: true,
          changes: { add: 1, remove: 1 },
        },
      ],
      ['rule.delete', before, expect.objectContaining({ managedBy: null }), null],
      [
        'rule.create',
        expect.any(String),
        null,
        expect.objectContaining({ managedBy: { source: 'policy', name: 'a' } }),
      ],
    ]);
  });
});

describe('a plan', () => {
  it('has a digest of what is stated, whatever the order', () => {
    const [a, b] = [deny('x'), { ruleValue: { models: ['x'] }, ruleType: 'deny_models' }];
    const digest = (folder: PolicyFolder): string => planOf(folder).digest;
    const one = digest({ organization: { rules: { a, b } } });
    expect(digest({ organization: { rules: { b, a } } })).toBe(one);
    expect(digest({ organization: { rules: { a, c: b } } })).not.toBe(one);
  });

  it('is refused for other rules, and another folder, than were reviewed', () => {
    const folder = { organization: { rules: { a: FREE } } };
    const reviewed = planOf(folder);
    expect(changes(folder, { reviewed })).toEqual(['add organization a']);
    const refusal = (options: Partial<PlanOptions>, of = folder): string => {
      try {
        return changes(of, options).join();
      } catch (error) {
        return error instanceof ApiError ? `${error.status} ${error.code}: ${error.message}` : String(error);
      }
    };
    expect(refusal({ reviewed }, { organization: { rules: { a: { ...FREE, ruleType: 'deny_pricing' } } } })).toBe(
      '409 folder_changed: The folder does not state what it did when the plan was made. Plan again, review what it says now, and apply that.',
    );
    add(KEY, FREE);
    expect(refusal({ reviewed })).toBe(
      '409 rules_changed: The rules have changed since the plan was made: it is for their revision 0, and now is 1. Plan again, review what it says now, and apply that.',
    );
  });

  it('warns as a write of the rules does, of those that it changes', () => {
    const folder = { organization: { rules: { a: deny('sandbox-slo') } } };
    expect(planView(planOf(folder), null).warnings).toEqual([
      '/organization/rules/a: "sandbox-slo" is not the name of a model in the catalogue; did you mean `sandbox-slow`?',
    ]);
    apply(folder);
    expect(planOf(folder).warnings).toEqual([]);
  });

  it('names every fault at once, each with its place', () => {
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`r${index}`, deny(`x${index}*`)]));
    expect(
      faultsOf({
        organization: { rules: many },
        members: {
          'nobody@example.com': { rules: {} },
          'owner@example.com': { rules: { a: { ruleType: 'deny_models' }, b: deny('x y') } },
          [ID.owner]: { rules: {} },
        },
        keys: {
          'a/b': { rules: {} },
          [ID.playgroundKey]: { rules: {} },
          [ID.foreignKey]: { rules: {} },
          "The owner's": { rules: { a: { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/33'] } } } },
        },
      }),
    ).toEqual([
      '/members/nobody@example.com: There is no such member.',
      '/members/owner@example.com/rules/a/ruleValue is missing.',
      '/members/owner@example.com/rules/b/ruleValue/models/0 ("x y") must be a model id (letters, digits and . _ : @ / -, at most 512 of them) or a prefix of one that ends in its only *.',
      `/members/${ID.owner} means the same as /members/owner@example.com.`,
      '/keys/a~1b: no key has this description.',
      `/keys/${ID.playgroundKey}: A playground key cannot be given rules.`,
      `/keys/${ID.foreignKey}: There is no such key.`,
      '/keys/The owner\'s/rules/a/ruleValue/ipCidrs/0 is not a CIDR range: "10.0.0.0/33" must end in a prefix length from 0 to 32.',
      '/organization: The rules of a key, a member, a group or an organization may have at most 50 entries that end in * together; this would make 51.',
    ]);
  });

  it('counts rules that stay next to its own against the bounds', () => {
    for (let index = 0; index < 50; index += 1) add(ORGANIZATION, deny(`x${index}*`));
    const folder = { organization: { rules: { a: deny('y*') } } };
    expect(faultsOf(folder)).toEqual([expect.stringContaining('this would make 51')]);
    expect(faultsOf(folder, { prune: true })).toEqual([]);
  });

  it('asks of the actor, and of the plan, what a write of each rule does', () => {
    const ofOwner = { members: { 'owner@example.com': { rules: { a: FREE } } } };
    expect(() => planOf({}, {}, developer)).toThrow('Developers can only manage their own keys.');
    expect(faultsOf(ofOwner, {}, admin)).toEqual([
      "/members/owner@example.com: An admin cannot change an owner's rules.",
    ]);
    add({ kind: 'member', member: ID.owner }, FREE);
    expect(faultsOf({}, { prune: true }, admin)).toEqual(["An admin cannot change an owner's rules."]);
    const ip = { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } };
    apply({ organization: { rules: { ip } } });
    updateOrganization(db, ID.organization, { plan: 'free' }, startMs);
    expect(faultsOf({ organization: { rules: { ip } } })).toEqual([]);
    expect(faultsOf({ organization: { rules: { ip, more: ip } } })).toEqual([
      '/organization: IP rules are part of the enterprise plan only.',
    ]);
  });

  it('finds a group by its name or id', () => {
    const { id } = createGroup(db, owner, { name: 'contractors' }, startMs).group;
    const rules = { a: FREE };
    expect(changes({ groups: { contractors: { rules } } })).toEqual(['add group a']);
    apply({ groups: { [id]: { rules } } });
    expect(rulesOf({ kind: 'group', group: id })).toMatchObject([{ groupId: id, managedBy: { name: 'a' } }]);
    expect(changes({ groups: { contractors: { rules: {} } } })).toEqual(['remove group a']);
    expect(faultsOf({ groups: { contractors: { rules }, [id]: { rules }, others: { rules } } })).toEqual([
      `/groups/${id} means the same as /groups/contractors.`,
      '/groups/others: no group has this name.',
    ]);
  });

  it('finds a key by the description that it alone has', () => {
    db.run(build.updateTable('keys').set({ description: "The owner's" }).where('id', '=', ID.developerKey));
    expect(faultsOf({ keys: { "The owner's": { rules: {} } } })).toEqual([
      `/keys/The owner's: several keys have this description; use an id instead: ${ID.ownerKey}, ${ID.developerKey}.`,
    ]);
  });
});

describe('a change of a managed rule by other means', () => {
  it('is made, and warns of the next apply', () => {
    apply({ source: 'security', organization: { rules: { a: FREE } } });
    const [rule] = rulesOf(ORGANIZATION);
    const id = rule?.id ?? '';
    expect(getRule(db, owner, ORGANIZATION, id, write).warnings).toEqual([]);
    expect(changeRule(db, owner, ORGANIZATION, id, { mode: 'report' }, write).warnings).toEqual([
      'The policy folder "security" states this rule as "a": its next apply takes this change back.',
    ]);
    expect(changes({ source: 'security', organization: { rules: { a: FREE } } })).toEqual(['change organization a']);
    expect(createRule(db, owner, ORGANIZATION, deny('sandbox-slow'), write).warnings).toEqual([
      'The policy folder "security" states rules of the same owner, and not this one: an apply with --prune removes it.',
    ]);
    expect(deleteRule(db, owner, ORGANIZATION, id, false, startMs)).toEqual({
      id,
      deleted: true,
      widens: { count: 0, cells: [] },
      warnings: ['The policy folder "security" states this rule as "a": its next apply makes it again.'],
    });
  });
});
