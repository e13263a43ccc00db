import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FixtureFacts } from '../../../src/generated/types.ts';
import { archivedBundle, readArchive } from '../../../src/policy/archive/read-archive.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { explain, readCall } from '../../../src/workbench/analysis/explain.ts';
import { rule, type SmallCredentials, type SmallRules, smallWorld } from '../small-world.ts';

const NOW = Date.UTC(2026, 10, 25, 12);

const pdp = createPdp();
const CALLER = { organizationId: 'org_1', projectId: 'proj_1' };

function explained(rules: SmallRules, call: Parameters<typeof readCall>[2], credentials: SmallCredentials = {}) {
  const world = smallWorld(rules, credentials);
  const [key] = world.keys.values();
  if (key === undefined) throw new Error('no key');
  return explain(pdp, world, key, readCall(world, key, call, NOW), 'revision');
}

it('says everything that stands against a request, in every scope', () => {
  const rules = {
    organization: [{ ...rule('rule_o', 'deny_models', { models: ['gpt*'] }), description: 'No GPT' }],
    key: [
      rule('rule_k', 'allow_providers', { providers: ['azure'] }),
      rule('rule_r', 'deny_providers', { providers: ['azure'] }, 'report'),
    ],
  };
  expect(explained(rules, { model: 'gpt', address: '::ffff:192.0.2.1' })).toEqual({
    outcome: 'deny',
    reason:
      'Access denied: model not allowed: gpt* is denied by rule rule_o (No GPT). This is an organization IAM rule set by the org admin.',
    request: { action: 'chat', model: 'gpt', address: '192.0.2.1' },
    candidates: ['azure/gpt-5', 'openai/gpt-5'],
    withoutCredential: [],
    permitted: [],
    violations: [
      {
        scope: 'key',
        kind: 'providers',
        effect: 'allow',
        candidate: 'openai/gpt-5',
        ruleIds: ['rule_k'],
        values: ['openai'],
      },
      {
        scope: 'organization',
        kind: 'models',
        effect: 'deny',
        candidate: 'azure/gpt-5',
        ruleIds: ['rule_o'],
        values: ['gpt*'],
      },
      {
        scope: 'organization',
        kind: 'models',
        effect: 'deny',
        candidate: 'openai/gpt-5',
        ruleIds: ['rule_o'],
        values: ['gpt*'],
      },
    ],
    shadow: { permitted: [], would_deny: [], would_allow: [] },
    rules: [
      { id: 'rule_o', scope: 'organization', ruleType: 'deny_models', description: 'No GPT' },
      { id: 'rule_k', scope: 'key', ruleType: 'allow_providers', description: null },
    ],
    flips: { sets: [['rule_o']], exhaustive: true },
    alternative: { model: 'claude-opus', provider: 'azure', nearness: 'same modalities' },
    warnings: [],
    policyRevision: 'revision',
  });
});

it('says without which rules a permitted request would be denied', () => {
  const rules = {
    key: [rule('rule_1', 'allow_models', { models: ['gpt-5'] }), rule('rule_2', 'allow_models', { models: ['opus'] })],
  };
  const { outcome, reason, flips, alternative } = explained(rules, { model: 'gpt-5' });
  expect({ outcome, reason, flips, alternative }).toEqual({
    outcome: 'permit',
    reason: null,
    flips: { sets: [['rule_1']], exhaustive: true },
    alternative: null,
  });
});

it('offers the same model elsewhere first', () => {
  const rules = { key: [rule('rule_1', 'deny_providers', { providers: ['openai'] })] };
  expect(explained(rules, { model: 'gpt-5', provider: 'openai' }).alternative).toEqual({
    model: 'gpt-5',
    provider: 'azure',
    nearness: 'same model',
  });
});

it('judges those with a credential, and names the others', () => {
  const { outcome, candidates, withoutCredential, permitted } = explained(
    {},
    { model: 'gpt-5' },
    { served: ['azure'] },
  );
  expect({ outcome, candidates, withoutCredential, permitted }).toEqual({
    outcome: 'permit',
    candidates: ['azure/gpt-5'],
    withoutCredential: ['openai/gpt-5'],
    permitted: ['azure/gpt-5'],
  });
});

it('answers as the gateway does where none has a credential, and says what the rules would do', () => {
  const rules = { key: [rule('rule_1', 'deny_models', { models: ['azure/gpt-5'] })] };
  expect(explained(rules, { model: 'gpt-5' }, { served: [] })).toEqual({
    outcome: 'not_found',
    reason: 'No provider of the model `gpt-5` has a credential for this project.',
    request: { action: 'chat', model: 'gpt-5', address: null },
    candidates: ['azure/gpt-5', 'openai/gpt-5'],
    withoutCredential: ['azure/gpt-5', 'openai/gpt-5'],
    permitted: ['openai/gpt-5'],
    violations: [
      {
        scope: 'key',
        kind: 'models',
        effect: 'deny',
        candidate: 'azure/gpt-5',
        ruleIds: ['rule_1'],
        values: ['azure/gpt-5'],
      },
    ],
    rules: [{ id: 'rule_1', scope: 'key', ruleType: 'deny_models', description: null }],
    flips: { sets: [], exhaustive: true },
    alternative: null,
    warnings: [],
    policyRevision: 'revision',
  });
});

it('offers what can be called in place of what cannot', () => {
  const { outcome, alternative } = explained({}, { model: 'gpt-5-mini' }, { served: ['azure'] });
  expect({ outcome, alternative }).toEqual({
    outcome: 'not_found',
    alternative: { model: 'gpt-5', provider: 'azure', nearness: 'same family' },
  });
});

it('of `auto` is about what the gateway would choose', () => {
  const { outcome, candidates } = explained({}, { model: 'auto' });
  expect([outcome, candidates.length]).toEqual(['permit', 3]);
  const denied = explained(
    { key: [rule('rule_1', 'deny_providers', { providers: ['openai', 'azure'] })] },
    { model: 'auto' },
  );
  expect([denied.outcome, denied.candidates.length > 3]).toEqual(['deny', true]);
  expect(() => explained({}, { model: 'auto' }, { served: [] })).toThrow(
    'No model that this project has a credential for fits the request.',
  );
});

describe('by a policy with a package custom', () => {
  const custom = createPdp(
    archivedBundle(readArchive(readFileSync(new URL('../../fixtures/policy/examples.tar.gz', import.meta.url)))),
  );
  const world = smallWorld();
  const outcomeOf = (facts: FixtureFacts, tags: readonly string[] = []) => {
    const [key] = world.keys.values();
    if (key === undefined) throw new Error('no key');
    const call = readCall(world, key, { model: 'gpt-5', facts }, NOW);
    const { reason, facts: seen, alternative } = explain(custom, world, { ...key, tags }, call, 'revision');
    return { reason, seen, alternative };
  };
  const affordable = { meta: { ticket: 'OPS-1' }, worstCaseCost: { 'azure/gpt-5': 1, 'openai/gpt-5': 1 } };

  it('is about a short chat now with the tags of its key, but for what is said of it', () => {
    expect(outcomeOf({})).toEqual({
      reason:
        'Access denied: name your ticket in the header x-portcullis-meta-ticket; the call may cost too much (cost, ticket).',
      seen: {
        time: { unix: NOW / 1000, date: '2026-11-25', weekday: 'wednesday', hour: 12, minute: 0 },
        door: 'rest',
        stream: false,
        text_bytes: 100,
        modalities: [],
        tool_names: [],
        worst_case_cost: { 'azure/gpt-5': expect.any(Number) },
        meta: {},
        key_tags: [],
      },
      alternative: null,
    });
    expect(outcomeOf({ ...affordable, toolNames: ['search'] }, ['contractor'])).toMatchObject({
      reason: 'Access denied: contractors call no tools (no-tools-for-contractors).',
      seen: { meta: affordable.meta, tool_names: ['search'], key_tags: ['contractor'] },
    });
    expect(outcomeOf({ ...affordable, time: '2026-11-29T12:00:00Z' }).reason).toMatch(/business-hours/);
  });
});

describe('a request', () => {
  it.each<[Parameters<typeof readCall>[2], number, string | null]>([
    [{ model: 'gpt-9' }, 404, null],
    [{ model: 'gpt-5-mini', provider: 'azure' }, 404, null],
    [{ model: 'gpt-5', address: '10.0.0.1:80' }, 400, '/request/address'],
    [{ model: 'gpt-5', action: 'image' }, 400, '/model'],
    [{ model: 'gpt-5', action: 'moderation' }, 400, null],
  ])('%j is refused with %i', (call, status, param) => {
    expect(() => readCall(smallWorld(), CALLER, call, NOW, '/request')).toThrow(
      expect.objectContaining({ status, param }),
    );
  });
});
