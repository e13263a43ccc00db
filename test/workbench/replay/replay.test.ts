import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPdp } from '../../../src/policy/pdp.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { REPLAY_DIMENSIONS, replay, replayBy } from '../../../src/workbench/replay/replay.ts';
import type { World, WorldRule } from '../../../src/workbench/world/world.ts';
import { logDecision } from '../../support/logged-decisions.ts';
import { rule, smallWorld } from '../small-world.ts';

const START = Date.UTC(2026, 0, 31);
const pdp = createPdp();
const REVISION = `${pdp.bundleDigest.slice(0, 12)}.3`;
const NOTHING = { denied: 0, permitted: 0, widened: 0, narrowed: 0 };
const OTHER = 'b'.repeat(64);

let db: Database;
beforeEach(() => {
  db = openDatabase(':memory:', { create: true });
});
afterEach(() => db.close());

const withKeyRules = (...key: readonly WorldRule[]): World => smallWorld({ key });
const noOpus = rule('rule_1', 'deny_models', { models: ['claude-opus'] });

let calls = 0;
/** A call of the small world's key, as it is decided by the rules of a world. */
const log = (world: World, model: string, changes: Parameters<typeof logDecision>[3] = {}) => {
  calls += 1;
  return logDecision(db, world, { keyId: 'key_1', model, time: START + calls }, changes);
};

const scope = { filter: { organizationId: 'org_1', from: START, to: START + 86_400_000 }, groupBy: REPLAY_DIMENSIONS };
const replayed = (world: World, by: 'recorded' | 'current' = 'current', progress = () => {}) =>
  replay(db, replayBy(pdp, world, by), scope, progress);

/** What a report is when nothing changes. */
const same = (by: 'recorded' | 'current', decisions: number) => ({
  by,
  policyRevision: REVISION,
  from: '2026-01-31T00:00:00.000Z',
  to: '2026-02-01T00:00:00.000Z',
  decisions,
  unchanged: decisions,
  changed: NOTHING,
  unjudged: [],
  otherPolicies: [],
  withoutFacts: 0,
  recorded: by === 'recorded' ? { identical: decisions, different: 0, differences: [] } : null,
  groupBy: ['key', 'member', 'rule', 'model'],
  groups: [],
  moreGroups: 0,
  rules: [],
  warnings: [],
});

const group = (change: string, model: string, ruleIds: readonly string[], ...examples: readonly string[]) => ({
  change,
  key: { id: 'key_1', name: 'one' },
  member: { id: 'mem_1', name: 'a@example.com' },
  model,
  ruleIds,
  decisions: examples.length,
  examples,
});

describe('under the current rules', () => {
  it('says what is newly denied and permitted, and which candidates come and go', () => {
    const onlyAzure = rule('rule_2', 'allow_providers', { providers: ['azure'] });
    const before = withKeyRules(noOpus, rule('rule_3', 'deny_providers', { providers: ['azure'] }));
    const denied = log(withKeyRules(), '42');
    const permitted = log(before, 'claude-opus');
    const narrowed = log(withKeyRules(), 'gpt-5');
    const widened = log(before, 'gpt-5');
    expect(replayed(withKeyRules({ ...onlyAzure, description: 'one provider' }))).toEqual({
      ...same('current', 4),
      unchanged: 0,
      changed: { denied: 1, permitted: 1, widened: 1, narrowed: 1 },
      groups: [
        group('denied', '42', ['rule_2'], denied),
        group('permitted', 'claude-opus', ['rule_1'], permitted),
        group('narrowed', 'gpt-5', ['rule_2'], narrowed),
        group('widened', 'gpt-5', ['rule_3'], widened),
      ],
      rules: [
        { id: 'rule_1', scope: 'key', ruleType: 'deny_models', description: null },
        { id: 'rule_2', scope: 'key', ruleType: 'allow_providers', description: 'one provider' },
        { id: 'rule_3', scope: 'key', ruleType: 'deny_providers', description: null },
      ],
    });
  });

  it('judges for the groups that the key is in now, by their names', () => {
    const id = log(withKeyRules(), 'claude-opus');
    const group_1 = { id: 'group_1', organizationId: 'org_1', name: 'contractors', holderIds: new Set(['mem_1']) };
    const grouped = { ...withKeyRules(), groups: new Map([['group_1', { ...group_1, rules: [noOpus] }]]) };
    expect(replayed(grouped)).toMatchObject({
      changed: { ...NOTHING, denied: 1 },
      groups: [group('denied', 'claude-opus', ['rule_1'], id)],
      rules: [{ id: 'rule_1', scope: 'group', groupName: 'contractors', ruleType: 'deny_models', description: null }],
    });
    log(grouped, 'claude-opus');
    expect(replayed(withKeyRules(), 'recorded')).toEqual(same('recorded', 2));
  });

  it('counts apart the decisions of a key that is no longer there', () => {
    const id = log(withKeyRules(), 'gpt-5');
    const gone = { ...withKeyRules(noOpus), keys: new Map() };
    const unjudged = [{ reason: 'subject_gone', decisions: 1, examples: [id] }];
    expect(replayed(gone)).toEqual({ ...same('current', 1), unchanged: 0, unjudged });
  });

  it('counts apart what the policy cannot evaluate', () => {
    const inputJson = JSON.stringify({
      action: 'chat',
      client_ip: null,
      subjects: [{ scope: 'key', id: 'key_1' }],
      candidates: [],
    });
    const id = log(withKeyRules(), 'gpt-5', { inputJson });
    const other = log(withKeyRules(), 'gpt-5');
    const unjudged = [{ reason: 'failed', decisions: 1, examples: [id] }];
    expect(replayed(withKeyRules())).toEqual({ ...same('current', 2), unchanged: 1, unjudged });
    expect(other).not.toBe(id);
  });

  it('tells a denial by other rules than then from none', () => {
    log(withKeyRules(noOpus), 'claude-opus');
    expect(replayed(withKeyRules(rule('rule_9', 'deny_providers', { providers: ['openai', 'azure'] })))).toEqual(
      same('current', 1),
    );
  });
});

describe('by the rules that were seen', () => {
  it('is the same, whatever the rules are now', () => {
    for (const model of ['gpt-5', 'claude-opus', 'gpt-5']) log(withKeyRules(noOpus), model);
    expect(replayed(withKeyRules(), 'recorded')).toEqual(same('recorded', 3));
  });

  it('shows both results where the same policy says something else', () => {
    const forged = { outcome: 'permit', reasonJson: null, violationsJson: '[]' } as const;
    const id = log(withKeyRules(noOpus), 'claude-opus', forged);
    const shadow = '{"permitted":[],"would_deny":[],"would_allow":[]}';
    const other = log(withKeyRules(), 'gpt-5', { shadowJson: shadow });
    const violation = { candidate: 'openai/claude-opus', effect: 'deny', kind: 'models', ruleIds: ['rule_1'] };
    const denial = { scope: 'key', kind: 'models', effect: 'deny', ruleIds: ['rule_1'], values: ['claude-opus'] };
    const { recorded, changed } = replayed(withKeyRules(), 'recorded');
    expect(changed).toEqual({ ...NOTHING, denied: 1 });
    expect(recorded).toMatchObject({ identical: 0, different: 2 });
    const [first, second] = recorded?.differences ?? [];
    expect(first).toEqual({
      decisionId: id,
      decisions: 1,
      recorded: { ...forged, shadowJson: null },
      replayed: {
        outcome: 'deny',
        reasonJson: JSON.stringify(denial),
        violationsJson: expect.any(String),
        shadowJson: null,
      },
    });
    expect(JSON.parse(first?.replayed.violationsJson ?? '')).toEqual(
      [
        { ...violation, scope: 'key', values: ['claude-opus'] },
        { ...violation, candidate: 'azure/claude-opus', scope: 'key', values: ['claude-opus'] },
      ].sort((a, b) => (a.candidate < b.candidate ? -1 : 1)),
    );
    expect(second).toMatchObject({
      decisionId: other,
      recorded: { shadowJson: shadow },
      replayed: { shadowJson: null },
    });
  });

  it('judges by the policy of now what another one decided, and says how much', () => {
    const forged = { outcome: 'permit', reasonJson: null, violationsJson: '[]' } as const;
    const id = log(withKeyRules(noOpus), 'claude-opus', { ...forged, bundleDigest: OTHER });
    log(withKeyRules(noOpus), 'gpt-5', { bundleDigest: OTHER });
    expect(replayed(withKeyRules(), 'recorded')).toMatchObject({
      unchanged: 1,
      otherPolicies: [{ digest: OTHER, decisions: 2 }],
      recorded: { identical: 0, different: 0, differences: [] },
      groups: [
        {
          change: 'denied',
          key: { id: 'key_1', name: null },
          model: 'claude-opus',
          ruleIds: ['rule_1'],
          examples: [id],
        },
      ],
    });
  });

  it('counts apart what saw a document that is not what its digest says', () => {
    const id = log(withKeyRules(noOpus), 'gpt-5');
    log(withKeyRules(), 'gpt-5');
    db.connection.prepare("UPDATE data_documents SET text = text || ' ' WHERE text LIKE '%rule_1%'").run();
    expect(replayed(withKeyRules(), 'recorded')).toMatchObject({
      unchanged: 1,
      unjudged: [{ reason: 'damaged', decisions: 1, examples: [id] }],
      recorded: { identical: 1, different: 0 },
    });
  });

  it('counts apart what is not on record any more', () => {
    const ids = ['gpt-5', 'claude-opus'].map((model) => log(withKeyRules(noOpus), model));
    log(withKeyRules(), 'gpt-5');
    db.connection.prepare("DELETE FROM data_documents WHERE text LIKE '%rule_1%'").run();
    const unjudged = [{ reason: 'not_on_record', decisions: 2, examples: ids }];
    const recorded = { identical: 1, different: 0, differences: [] };
    expect(replayed(withKeyRules(), 'recorded')).toEqual({ ...same('recorded', 3), unchanged: 1, unjudged, recorded });
    db.connection.prepare("DELETE FROM call_verdicts WHERE outcome = 'deny'").run();
    expect(replayed(withKeyRules(), 'recorded')).toMatchObject({ decisions: 3, unjudged });
  });
});

it('takes the calls of its range, organization, key, member and model', () => {
  const id = log(withKeyRules(), 'gpt-5');
  const replayedOf = (filter: object) => {
    const { decisions } = replay(
      db,
      replayBy(pdp, withKeyRules(), 'current'),
      { ...scope, filter: { ...scope.filter, ...filter } },
      () => {},
    );
    return decisions;
  };
  const time = START + calls;
  expect(id).toMatch(/^dec_/);
  const none = [{ from: time + 1 }, { to: time }, { organizationId: 'org_2' }, { keyId: 'key_2' }];
  expect(none.map(replayedOf)).toEqual([0, 0, 0, 0]);
  expect([{ memberId: 'mem_2' }, { model: 'opus' }].map(replayedOf)).toEqual([0, 0]);
  const all = [{}, { from: time, to: time + 1 }, { keyId: 'key_1' }, { memberId: 'mem_1' }, { model: 'gpt-5' }];
  expect(all.map(replayedOf)).toEqual([1, 1, 1, 1, 1]);
});

it('refuses more decisions than it may judge, tells how far it is, and ends when progress is refused', () => {
  for (const model of ['gpt-5', 'gpt-5', '42']) log(withKeyRules(), model);
  const by = replayBy(pdp, withKeyRules(), 'current');
  expect(() => replay(db, by, { ...scope, most: 2 }, () => {})).toThrow(
    'There are more than 2 decisions: ask for less, or use the command line.',
  );
  const told: number[][] = [];
  replay(db, by, { ...scope, most: 3 }, (...progress) => told.push(progress));
  expect([told[0], told.at(-1)]).toEqual([
    [0, 3],
    [3, 3],
  ]);
  const stop = () => {
    throw new Error('stopped');
  };
  expect(() => replay(db, by, scope, stop)).toThrow('stopped');
});
