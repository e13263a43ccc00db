import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deleteKey } from '../../../src/admin/keys/keys.ts';
import { changeRule, createRule } from '../../../src/admin/rules/iam-rules.ts';
import { checkShape } from '../../../src/domain/check-shape.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { compileSubjectRules } from '../../../src/policy/data-document.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { prepareSubjectRules } from '../../../src/store/rules/rules.ts';
import { removeMember } from '../../../src/store/tenants/member-records.ts';
import { applyDrafts } from '../../../src/workbench/analysis/drafts.ts';
import { readWorld, type World } from '../../../src/workbench/world/world.ts';
import { readWorldDocument, worldDocument } from '../../../src/workbench/world/world-document.ts';
import { catalog, cli, ID, seededDatabase, startMs } from '../../admin/tenants.ts';
import { rule, smallWorld } from '../small-world.ts';

const validateDraftRules = validator('DraftRules');

let db: Database;
beforeEach(() => {
  db = seededDatabase();
});
afterEach(() => db.close());

const installation = { catalog, servedProviders: new Set(['sandbox']) };
const write = { now: startMs, catalog, trustedProxies: [] };
const add = (owner: Parameters<typeof createRule>[2], body: object): string =>
  createRule(db, cli, owner, body, write).rule.id;
const denies = (...models: string[]) => ({ ruleType: 'deny_models', ruleValue: { models } });

describe('the world of a database', () => {
  it('holds the organizations, the present members, and the keys that call the gateway', () => {
    removeMember(db, ID.otherOrganization, ID.foreigner, startMs);
    deleteKey(db, cli, ID.ownerKey, startMs);
    const world = readWorld(db, installation);
    expect([...world.organizations.keys()]).toEqual([ID.organization, ID.otherOrganization]);
    expect([...world.members.keys()]).toEqual([ID.owner, ID.admin, ID.developer]);
    expect([...world.keys.keys()]).toEqual([ID.developerKey, ID.playgroundKey]);
    expect([...readWorld(db, installation, ID.otherOrganization).organizations.keys()]).toEqual([ID.otherOrganization]);
  });

  it('has the active rules of each subject as they are compiled for calls', () => {
    add({ kind: 'key', key: ID.developerKey }, { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.1.2.3/8'] } });
    add({ kind: 'key', key: ID.developerKey }, { ...denies('sandbox-paid'), mode: 'report' });
    const inactive = add({ kind: 'key', key: ID.developerKey }, denies('sandbox-free'));
    changeRule(db, cli, { kind: 'key', key: ID.developerKey }, inactive, { status: 'inactive' }, write);
    const rules = readWorld(db, installation).keys.get(ID.developerKey)?.rules ?? [];
    expect(compileSubjectRules(rules)).toBe(
      prepareSubjectRules(db)(ID.organization, [ID.developerKey]).get(ID.developerKey)?.text,
    );
  });
});

describe('a document', () => {
  it('is read back as the world that it was written of, but for the rule revision, roles, playground keys and what can be called', () => {
    add({ kind: 'organization' }, denies('sandbox-paid'));
    add({ kind: 'member', member: ID.developer }, { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: 2.5 } });
    const world = readWorld(db, installation);
    const organizations = [...world.organizations].map(
      ([id, each]) => [id, { ...each, ruleRevision: 0, providers: null }] as const,
    );
    const keys = [...world.keys].map(
      ([id, { isPlayground: _, ...each }]) => [id, { ...each, projectId: null }] as const,
    );
    const members = [...world.members].map(([id, { role: _, ...each }]) => [id, each] as const);
    const content: unknown = JSON.parse(JSON.stringify(worldDocument(world)));
    expect(readWorldDocument(content, catalog)).toEqual({
      ...world,
      servedProviders: new Set(),
      organizations: new Map(organizations),
      members: new Map(members),
      keys: new Map(keys),
    });
  });

  it.each([
    [{}, '/organizations'],
    [
      { organizations: [{ id: 'org_1', keys: [{ id: 'key_1', memberId: 'mem_1' }] }] },
      '/organizations/0/keys/0/memberId',
    ],
    [
      {
        organizations: [
          { id: 'org_1', rules: [{ id: 'rule_1', ruleType: 'deny_models', ruleValue: { providers: ['a'] } }] },
        ],
      },
      '/organizations/0/rules/0/ruleValue/models',
    ],
    [
      {
        organizations: [
          {
            id: 'org_1',
            members: [{ id: 'mem_1', rules: [{ id: 'r', ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['x'] } }] }],
          },
        ],
      },
      '/organizations/0/members/0/rules/0/ruleValue/ipCidrs/0',
    ],
    [{ organizations: [{ id: 'org_1' }, { id: 'org_1' }] }, '/organizations/1/id'],
    [{ organizations: [{ id: 'org_1', secret: 1 }] }, '/organizations/0/secret'],
  ])('that says %j is refused at %s', (content, param) => {
    expect(() => readWorldDocument(content, catalog)).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

describe('drafts', () => {
  const stored = smallWorld({ key: [rule('rule_1', 'deny_models', { models: ['gpt-5'] })] });
  const withDrafts = (world: World, content: unknown): World =>
    applyDrafts(world, checkShape(validateDraftRules, content).rules);
  const keyRules = (world: World) => world.keys.get('key_1')?.rules;
  const [first] = keyRules(stored) ?? [];

  it('add a rule to a key, a member or the organization, and touch nobody else', () => {
    const draft = { ruleType: 'deny_models', ruleValue: { models: ['opus', 'opus'] } };
    const added = rule('draft_1', 'deny_models', { models: ['opus'] });
    const ofKey = withDrafts(stored, { rules: [{ ...draft, key: 'one' }] });
    expect(keyRules(ofKey)).toEqual([first, added]);
    expect(ofKey.organizations).toBe(stored.organizations);
    const ofMember = withDrafts(stored, { rules: [{ ...draft, member: 'A@example.com' }] });
    expect(ofMember.members.get('mem_1')?.rules).toEqual([added]);
    const ofOrganization = withDrafts(stored, { rules: [{ ...draft, organization: true }] });
    expect(ofOrganization.organizations.get('org_1')?.rules).toEqual([added]);
  });

  it('change a rule, take it out of force, or remove it', () => {
    const change = (draft: object) => keyRules(withDrafts(stored, { rules: [{ id: 'rule_1', ...draft }] }));
    expect(change({ ruleType: 'allow_models' })).toEqual([rule('rule_1', 'allow_models', { models: ['gpt-5'] })]);
    expect(change({ mode: 'report' })).toEqual([rule('rule_1', 'deny_models', { models: ['gpt-5'] }, 'report')]);
    expect(change({ status: 'inactive' })).toEqual([]);
    expect(change({ remove: true })).toEqual([]);
  });

  it.each([
    [{ ruleType: 'deny_models', ruleValue: { models: ['a'] } }, '/rules/0'],
    [{ key: 'one', member: 'mem_1', ruleType: 'deny_models', ruleValue: { models: ['a'] } }, '/rules/0'],
    [{ key: 'two', ruleType: 'deny_models', ruleValue: { models: ['a'] } }, '/rules/0/key'],
    [{ key: 'one', ruleType: 'deny_models', ruleValue: { models: ['a*b'] } }, '/rules/0/ruleValue/models/0'],
    [{ key: 'one', ruleType: 'deny_models' }, '/rules/0/ruleValue'],
    [{ id: 'rule_9', remove: true }, '/rules/0/id'],
    [{ id: 'rule_1', remove: true, mode: 'report' }, '/rules/0'],
    [{ id: 'rule_1', ruleType: 'deny_providers' }, '/rules/0/ruleValue/providers'],
    [{ remove: true }, '/rules/0/id'],
    [{ id: 'rule_1', colour: 'red' }, '/rules/0/colour'],
  ])('that say %j are refused at %s', (draft, param) => {
    expect(() => withDrafts(stored, { rules: [draft] })).toThrow(expect.objectContaining({ status: 400, param }));
    expect(() => withDrafts(stored, { rules: [draft] })).toThrow(ApiError);
  });
});
