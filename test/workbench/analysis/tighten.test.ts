import { afterEach, beforeEach, expect, it } from 'vitest';
import { inputDocument } from '../../../src/policy/input-document.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { CALL_STATES } from '../../../src/store/ledger/statements.ts';
import { findTightenSubject, tighten } from '../../../src/workbench/analysis/tighten.ts';
import { keySubjects, type World } from '../../../src/workbench/world/world.ts';
import { type LoggedCall, logDecision } from '../../support/logged-decisions.ts';
import { rule, smallWorld } from '../small-world.ts';
import { customMapping } from '../worlds.ts';

const pdp = createPdp();

let db: Database;
beforeEach(() => {
  db = openDatabase(':memory:', { create: true });
});
afterEach(() => db.close());

const log = (world: World, call: Partial<LoggedCall>, changes: Parameters<typeof logDecision>[3] = {}): string =>
  logDecision(db, world, { keyId: 'key_1', model: 'gpt-5', time: 1000, ...call }, changes);

const tightened = (world: World, reference = 'key_1', addresses = false) =>
  tighten(db, pdp, world, findTightenSubject(world, reference), { from: 0, to: 1_000_000, addresses });

const ruleOf = (world: World, ruleType: string, reference?: string) =>
  tightened(world, reference).draft.find((change) => change.ruleType === ruleType)?.ruleValue;

it('counts what was tried for what served', () => {
  const world = smallWorld();
  log(world, { targets: ['azure/gpt-5', 'openai/gpt-5'] });
  log(world, { model: 'gpt-5-mini', targets: ['openai/gpt-5-mini'] });
  expect(tightened(world)).toMatchObject({
    calls: 2,
    models: { used: 2, reachable: 5 },
    providers: { used: 2, reachable: 2 },
    draft: [
      { key: 'key_1', ruleType: 'allow_models', ruleValue: { models: ['gpt-5', 'gpt-5-mini'] } },
      { key: 'key_1', ruleType: 'allow_providers', ruleValue: { providers: ['azure', 'openai'] } },
    ],
  });
});

it('counts no call that was refused after its decision, though it names who would have served', () => {
  const world = smallWorld();
  log(world, { targets: ['openai/gpt-5'] });
  db.connection.prepare('UPDATE ledger SET state = ?').run(CALL_STATES.released);
  expect(tightened(world)).toMatchObject({ calls: 0, since: null, draft: [] });
});

it('names a model with its providers where its name alone would permit more than the current rules', () => {
  const world = smallWorld({ key: [rule('rule_1', 'allow_models', { models: ['openai/gpt-5', 'azure/*'] })] });
  log(world, { targets: ['openai/gpt-5'] });
  log(world, { model: 'opus', targets: ['azure/claude-opus'] });
  expect(ruleOf(world, 'allow_models')).toEqual({ models: ['azure/claude-opus', 'gpt-5'] });
  const narrow = smallWorld({ key: [rule('rule_1', 'deny_models', { models: ['azure/gpt-5'] })] });
  expect(ruleOf(narrow, 'allow_models')).toEqual({ models: ['claude-opus', 'openai/gpt-5'] });
});

it('names a custom model behind its provider, and the provider as custom', () => {
  const world = smallWorld();
  const key = world.keys.get('key_1');
  if (key === undefined) throw new Error('no key');
  const input = inputDocument('chat', null, keySubjects(world, key), [customMapping('acme', 'own')]);
  log(world, { targets: ['acme/own'] }, { inputJson: JSON.stringify(input) });
  expect(ruleOf(world, 'allow_models')).toEqual({ models: ['acme/own'] });
  expect(ruleOf(world, 'allow_providers')).toEqual({ providers: ['custom:acme'] });
});

it('leaves a price rule that is there, and rules in mode report', () => {
  const key = [
    rule('rule_1', 'allow_pricing', { pricingType: 'free', maxInputPrice: '0' }),
    rule('rule_2', 'allow_models', { models: ['gpt-5'] }, 'report'),
  ];
  const world = smallWorld({ key });
  log(world, { targets: ['azure/gpt-5'] });
  expect(tightened(world).draft.map(({ id, ruleType }) => id ?? ruleType)).toEqual(['allow_models', 'allow_providers']);
});

it('leaves out addresses that no rule can hold', () => {
  const world = smallWorld();
  for (let place = 0; place < 201; place += 1) {
    log(world, { address: `10.0.${place}.1`, targets: ['openai/gpt-5'], time: 1000 + place });
  }
  expect(tightened(world, 'key_1', true)).toMatchObject({
    calls: 201,
    draft: [{ ruleType: 'allow_models' }, { ruleType: 'allow_providers' }],
    notes: ['allow_ip_cidrs is left out: it would have more entries than a rule can hold.'],
  });
});

it('counts for a member, and for a group, the calls of a key that is no longer there', () => {
  const world = smallWorld();
  log(world, { targets: ['openai/gpt-5'] });
  const gone = { ...world, keys: new Map() };
  expect(['a@example.com', 'team'].map((name) => tightened(gone, name).calls)).toEqual([1, 1]);
  expect(() => tightened(gone, 'key_1')).toThrow('There is no key, member or group "key_1".');
});

it('wants one that is meant', () => {
  const world = smallWorld();
  const [group] = world.groups.values();
  if (group === undefined) throw new Error('no group');
  const ambiguous = { ...world, groups: new Map([['grp_1', { ...group, name: 'one' }]]) };
  expect(() => tightened(ambiguous, 'one')).toThrow('"one" matches several: key_1, grp_1.');
});
