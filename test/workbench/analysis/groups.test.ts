// Groups in what is said of rules: who is in one meets its rules, and each says which group it is of.
import { describe, expect, it } from 'vitest';
import { readBundle } from '../../../src/policy/bundle.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { accessReport } from '../../../src/workbench/analysis/access.ts';
import { accessDiff } from '../../../src/workbench/analysis/diff.ts';
import { applyDrafts, widening } from '../../../src/workbench/analysis/drafts.ts';
import { explain, readCall } from '../../../src/workbench/analysis/explain.ts';
import { lintedMappings, lintWorld } from '../../../src/workbench/analysis/lint.ts';
import { mappingsOf } from '../../../src/workbench/world/candidates.ts';
import { holdersOf } from '../../../src/workbench/world/holders.ts';
import { createJudges } from '../../../src/workbench/world/judges.ts';
import { keySubjects, type World } from '../../../src/workbench/world/world.ts';
import { readWorldDocument, worldDocument } from '../../../src/workbench/world/world-document.ts';
import { rule, smallWorld } from '../small-world.ts';

const NOW = Date.UTC(2026, 10, 25, 12);

const pdp = createPdp();
const SHOWN = { withoutCredential: false };
const NO_GPT = rule('rule_g', 'deny_models', { models: ['gpt*'] });
const world = smallWorld({ group: [NO_GPT] });

function keyOf({ keys }: World) {
  const key = keys.get('key_1');
  if (key === undefined) throw new Error('no key');
  return key;
}

/** Another group with the key itself. */
const withSecond = (rules = [NO_GPT]): World => ({
  ...world,
  groups: new Map([
    ...world.groups,
    ['grp_2', { id: 'grp_2', organizationId: 'org_1', name: 'audited', holderIds: new Set(['key_1']), rules }],
  ]),
});

async function withJudges<T>(judged: World, work: (judges: ReturnType<typeof createJudges>) => Promise<T>): Promise<T> {
  const judges = createJudges(readBundle(), lintedMappings(mappingsOf(judged, 'org_1')), 0);
  try {
    return await work(judges);
  } finally {
    await judges.close();
  }
}

it('stand between the organization and the member, by name', () => {
  expect(keySubjects(withSecond(), keyOf(world)).map(({ scope, id }) => [scope, id])).toEqual([
    ['organization', 'org_1'],
    ['group', 'grp_2'],
    ['group', 'grp_1'],
    ['member', 'mem_1'],
    ['key', 'key_1'],
  ]);
});

it('are named in an explanation', () => {
  const { reason, violations, rules, flips } = explain(
    pdp,
    world,
    keyOf(world),
    readCall(world, { organizationId: 'org_1', projectId: 'proj_1' }, { model: 'gpt-5' }, NOW),
    'revision',
  );
  expect(reason).toBe(
    'Access denied: model not allowed: gpt* is denied by rule rule_g. This is a group IAM rule (team) set by the org admin.',
  );
  expect(violations.map(({ scope, group }) => [scope, group])).toEqual([
    ['group', 'grp_1'],
    ['group', 'grp_1'],
  ]);
  expect(rules).toEqual([
    { id: 'rule_g', scope: 'group', groupName: 'team', ruleType: 'deny_models', description: null },
  ]);
  expect(flips.sets).toEqual([['rule_g']]);
});

it('are named in an access table', () => {
  const [holder] = holdersOf(world);
  if (holder === undefined) throw new Error('nobody');
  const report = accessReport(pdp, world, holder, 'revision', SHOWN);
  expect(report.rules).toMatchObject([{ id: 'rule_g', groupName: 'team' }]);
  expect(report.denied.every(({ ruleIds }) => ruleIds.includes('rule_g'))).toBe(true);
});

describe('a difference', () => {
  const groupless = { ...world, groups: new Map() };

  it('names the rules of the group that someone leaves or joins', async () => {
    await withJudges(world, async (judges) => {
      const left = await accessDiff(judges, world, groupless, SHOWN);
      const flip = {
        reason: 'rules',
        rules: [expect.objectContaining({ id: 'rule_g', scope: 'group', groupName: 'team' })],
      };
      expect(left.flips).toEqual([expect.objectContaining({ ...flip, change: 'gained' })]);
      expect(left.flips[0]?.holders.map(({ id }) => id)).toEqual(['key_1', 'mem_1']);
      const joined = await accessDiff(judges, groupless, world, SHOWN);
      expect(joined.flips).toEqual([expect.objectContaining({ ...flip, change: 'lost' })]);
    });
  });

  it('is none where another group says the same', async () => {
    await withJudges(world, async (judges) => {
      const both = withSecond();
      const one = { ...both, groups: new Map([...both.groups].filter(([id]) => id === 'grp_2')) };
      const flips = (await accessDiff(judges, both, one, SHOWN)).flips;
      expect(flips.map(({ holders }) => holders.map(({ id }) => id))).toEqual([['mem_1']]);
    });
  });

  it('comes of a draft rule of a group, by id or name', () => {
    const drafted = ['grp_1', 'team'].map((group) =>
      applyDrafts(world, [{ group, ruleType: 'deny_providers', ruleValue: { providers: ['azure'] } }])
        .groups.get('grp_1')
        ?.rules.map(({ id }) => id),
    );
    expect(drafted).toEqual([
      ['rule_g', 'draft_1'],
      ['rule_g', 'draft_1'],
    ]);
    const draft = { ruleType: 'deny_providers' as const, ruleValue: { providers: ['azure'] } };
    expect(() => applyDrafts(world, [{ ...draft, group: 'nobodys' }])).toThrow(
      '/rules/0/group: no group is called "nobodys".',
    );
    expect(() => applyDrafts(world, [{ ...draft, group: 'team', key: 'key_1' }])).toThrow('must name one of');
  });
});

it('newly permit what they denied to those who leave', async () => {
  await withJudges(world, async (judges) => {
    const { cells } = await widening(judges, world, { groupId: 'grp_1', holderIds: [] });
    expect(new Set(cells.map(({ holder }) => holder.id))).toEqual(new Set(['key_1', 'mem_1']));
    expect((await widening(judges, world, { groupId: 'grp_1', holderIds: ['mem_1', 'key_1'] })).count).toBe(0);
  });
});

it('are blamed by name where a key reaches nothing, and their idle rules are found', async () => {
  const closed = smallWorld({
    group: [rule('all', 'deny_models', { models: ['*'] }), rule('idle', 'deny_models', { models: ['gpt-5'] })],
  });
  const { findings } = await withJudges(closed, (judges) => lintWorld(closed, judges));
  expect(findings.map(({ code, scope, message }) => [code, scope, message])).toContainEqual([
    'reaches-nothing',
    'key',
    'The key one (key_1) reaches nothing: the rules of the group team let nothing through.',
  ]);
  expect(findings).toContainEqual(
    expect.objectContaining({ code: 'shadowed-rule', scope: 'group', subjectName: 'team', ruleIds: ['idle'] }),
  );
});

it('are in an exported document, with those who are in them', () => {
  const document = worldDocument(withSecond());
  expect(document.organizations[0]?.groups?.map(({ name, members, keys }) => [name, members, keys])).toEqual([
    ['team', ['mem_1'], []],
    ['audited', [], ['key_1']],
  ]);
  const read = readWorldDocument(document, world.catalog);
  expect(worldDocument(read)).toEqual(document);
  const strange = structuredClone(document);
  strange.organizations[0]?.groups?.[1]?.keys?.push('key_9');
  expect(() => readWorldDocument(strange, world.catalog)).toThrow(
    "/organizations/0/groups/1/keys/1 is none of the organization's keys.",
  );
});
