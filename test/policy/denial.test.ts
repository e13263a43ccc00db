/** The reason of a denial and its sentence, from rules to words (policy/reference.md, "The reported reason"). */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type PolicyRule, RULE_TYPES } from '../../src/domain/iam-rule.ts';
import type { PolicyInput, PolicyViolation } from '../../src/generated/types.ts';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { type DenialReason, denialMessage, denialReason } from '../../src/policy/denial.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { CASES } from '../../src/policy/self-test.ts';
import { CALL, ipRule, modelRule, pricingRule, providerRule, SWIFT } from './policy-call.ts';

const pdp = createPdp();

const DEAR = {
  ...SWIFT,
  id: 'azure/swift-1',
  names: ['swift-1', 'azure/swift-1'],
  provider_names: ['azure'],
  input_price: 9_500_000,
};

interface Scopes {
  readonly organization?: PolicyRule[];
  readonly member?: PolicyRule[];
  readonly key?: PolicyRule[];
}

function reasonOf(
  { organization = [], member = [], key = [] }: Scopes,
  change: Partial<PolicyInput> = {},
): DenialReason {
  const input: PolicyInput = {
    ...CALL,
    subjects: [
      { scope: 'organization', id: 'org_1' },
      { scope: 'member', id: 'mem_1' },
      { scope: 'key', id: 'key_1' },
    ],
    candidates: [SWIFT, DEAR],
    ...change,
  };
  const data = dataDocument([
    { id: 'org_1', rules: compileSubjectRules(organization) },
    { id: 'mem_1', rules: compileSubjectRules(member) },
    { id: 'key_1', rules: compileSubjectRules(key) },
  ]);
  return denialReason(input, pdp.decide(input, data));
}

describe('the reason', () => {
  test('is the outermost scope that leaves no candidate', () => {
    const scopes = { organization: [modelRule('o1', 'deny', 'swift-1')], key: [ipRule('k1', 'deny', '0.0.0.0/0')] };
    expect(reasonOf(scopes)).toEqual({
      scope: 'organization',
      kind: 'models',
      effect: 'deny',
      ruleIds: ['o1'],
      values: ['swift-1'],
    });
  });

  test('is the first of the steps of policy/reference.md that leaves no candidate, within a scope', () => {
    const page = readFileSync(path.join(POLICY_DIRECTORY, 'reference.md'), 'utf8');
    const [, section = ''] = /^### The reported reason\n\n(.+)$/m.exec(page) ?? [];
    const steps = RULE_TYPES.toSorted((a, b) => section.indexOf(`\`${a}\``) - section.indexOf(`\`${b}\``));
    expect([...section.matchAll(/`(\w+)`/g)].map(([, type]) => type)).toEqual(steps);
    const rules = steps.map((type): PolicyRule => ({ ...CASES[type][0][0], id: type }));
    const reported = steps.map((_, index) => {
      const { effect, kind, ruleIds } = reasonOf({ key: rules.slice(index) }, { candidates: [SWIFT] });
      return [`${effect}_${kind}`, ruleIds];
    });
    expect(reported).toEqual(steps.map((type) => [type, [type]]));
  });

  test('is the step that drops the last candidate, not one that drops some', () => {
    const key = [providerRule('k1', 'deny', 'acme'), pricingRule('k2', 'deny', { maxInputPrice: '9' })];
    expect(reasonOf({ key })).toEqual({
      scope: 'key',
      kind: 'pricing',
      effect: 'deny',
      ruleIds: ['k2'],
      values: ['maxInputPrice=9000000'],
    });
  });

  test('may begin in an outer scope and end in an inner one', () => {
    const scopes = { member: [providerRule('m1', 'deny', 'azure')], key: [providerRule('k1', 'allow', 'azure')] };
    expect(reasonOf(scopes)).toEqual({
      scope: 'key',
      kind: 'providers',
      effect: 'allow',
      ruleIds: ['k1'],
      values: ['acme'],
    });
  });

  test('names for a deny step only the rules that match a candidate still standing', () => {
    const key = [
      modelRule('k1', 'deny', 'azure/*'),
      providerRule('k2', 'deny', 'azure'),
      providerRule('k3', 'deny', 'acme'),
    ];
    expect(reasonOf({ key })).toMatchObject({ kind: 'providers', ruleIds: ['k3'], values: ['acme'] });
  });

  test('names for an allow step all rules of the kind, and the model by its canonical id', () => {
    const key = [modelRule('k2', 'allow', 'slow-1'), modelRule('k1', 'allow', 'slow-*')];
    expect(reasonOf({ key })).toEqual({
      scope: 'key',
      kind: 'models',
      effect: 'allow',
      ruleIds: ['k1', 'k2'],
      values: ['swift-1'],
    });
  });

  test('is for an unknown address the deny step, with all its rules, or else the allow step', () => {
    const deny = [ipRule('k2', 'deny', '10.0.0.0/8'), ipRule('k1', 'deny', '::/0')];
    const allow = ipRule('k3', 'allow', '0.0.0.0/0');
    const unknown = { client_ip: null };
    expect([reasonOf({ key: [...deny, allow] }, unknown), reasonOf({ key: [allow] }, unknown)]).toEqual([
      { scope: 'key', kind: 'ip_cidrs', effect: 'deny', ruleIds: ['k1', 'k2'], values: ['unknown'] },
      { scope: 'key', kind: 'ip_cidrs', effect: 'allow', ruleIds: ['k3'], values: ['unknown'] },
    ]);
  });

  test('does not exist while a candidate is permitted', () => {
    expect(() => reasonOf({ key: [providerRule('k1', 'deny', 'azure')] })).toThrow(PolicyFailure);
  });
});

describe('the sentence', () => {
  const one = { candidates: [SWIFT] };

  test.each<[string, Scopes, Partial<PolicyInput>, string]>([
    [
      'a denied model',
      { key: [modelRule('k1', 'deny', 'swift-1', 'acme/*')] },
      one,
      'model not allowed: acme/*, swift-1 are denied by rule k1.',
    ],
    [
      'a model that is not allowed',
      { key: [modelRule('k1', 'allow', 'a'), modelRule('k2', 'allow', 'b')] },
      one,
      'model not allowed: swift-1 is not among the models allowed by rules k1, k2.',
    ],
    [
      'a denied provider',
      { key: [providerRule('k1', 'deny', 'acme')] },
      one,
      'provider blocked: acme is denied by rule k1.',
    ],
    [
      'a provider that is not allowed',
      { key: [providerRule('k1', 'allow', 'azure')] },
      one,
      'provider blocked: acme is not among the providers allowed by rule k1.',
    ],
    [
      'denied prices',
      { key: [pricingRule('k1', 'deny', { pricingType: 'paid', maxInputPrice: '1.5' })] },
      one,
      'pricing constraint exceeded: input price above 1.5 USD per million tokens and pricing type paid are denied by rule k1.',
    ],
    [
      'a price that nobody knows',
      { key: [pricingRule('k1', 'deny', { maxOutputPrice: '80' })] },
      { candidates: [{ id: 'a/b', names: ['b'], provider_names: ['a'], free: false, input_price: 2_500_000 }] },
      'pricing constraint exceeded: output price unknown is denied by rule k1.',
    ],
    [
      'prices that are not allowed',
      { key: [pricingRule('k1', 'allow', { maxOutputPrice: '3.999999' })] },
      { candidates: [{ id: 'a/b', names: ['b'], provider_names: ['a'], free: false, input_price: 2_500_000 }] },
      'pricing constraint exceeded: input price 2.5 USD per million tokens, output price unknown and pricing type paid ' +
        'are not allowed by rule k1.',
    ],
    [
      'a denied address',
      { key: [ipRule('k1', 'deny', '192.0.2.0/24')] },
      one,
      'IP not permitted: the client address lies in 192.0.2.0/24, denied by rule k1.',
    ],
    [
      'an address that is not allowed',
      { key: [ipRule('k1', 'allow', '10.0.0.0/8')] },
      one,
      'IP not permitted: the client address 192.0.2.1 is not in the ranges allowed by rule k1.',
    ],
    [
      'an unknown address',
      { key: [ipRule('k1', 'allow', '10.0.0.0/8')] },
      { client_ip: null },
      'IP not permitted: the client address is unknown, and rule k1 cannot be checked without it.',
    ],
    [
      "a member's rule",
      { member: [providerRule('m1', 'deny', 'acme')] },
      one,
      'provider blocked: acme is denied by rule m1. This is an organization member IAM rule set by the org admin.',
    ],
    [
      "an organization's rule",
      { organization: [providerRule('o1', 'deny', 'acme')] },
      one,
      'provider blocked: acme is denied by rule o1. This is an organization IAM rule set by the org admin.',
    ],
  ])('for %s names the kind, the value and the rules', (_, scopes, change, sentence) => {
    expect(denialMessage(reasonOf(scopes, change), new Map())).toBe(`Access denied: ${sentence}`);
  });

  test('says what people call each rule, where they call it anything', () => {
    const reason: DenialReason = {
      scope: 'member',
      kind: 'models',
      effect: 'allow',
      ruleIds: ['m1', 'm2', 'm3'],
      values: ['swift-1'],
    };
    const names = new Map([
      ['m1', 'Only what legal has seen'],
      ['m2', null],
      ['other', 'Not asked for'],
    ]);
    expect(denialMessage(reason, names)).toBe(
      'Access denied: model not allowed: swift-1 is not among the models allowed by rules m1 (Only what legal has seen), m2, m3. ' +
        'This is an organization member IAM rule set by the org admin.',
    );
  });
});

describe('what a package custom denies', () => {
  const closed: PolicyViolation = {
    scope: 'custom',
    kind: 'custom',
    effect: 'deny',
    ruleIds: ['hours'],
    values: ['closed'],
  };
  const byRule: PolicyViolation = { ...closed, scope: 'key', kind: 'models', candidate: SWIFT.id, ruleIds: ['rule_1'] };

  test('has its own words, and its own ids', () => {
    const decision = { permitted: [], violations: [closed, { ...closed, ruleIds: ['ticket'], values: ['no ticket'] }] };
    const reason = denialReason(CALL, decision);
    expect(reason).toEqual({ ...closed, ruleIds: ['hours', 'ticket'], values: ['closed', 'no ticket'] });
    expect(denialMessage(reason, new Map())).toBe('Access denied: closed; no ticket (hours, ticket).');
  });

  test('is no reason where rules deny', () => {
    const decision = { permitted: [], violations: [closed, byRule] };
    expect(denialReason(CALL, decision)).toMatchObject({ scope: 'key', kind: 'models', ruleIds: ['rule_1'] });
  });

  test('is a reason for the candidates that rules leave', () => {
    const decision = { permitted: [], violations: [{ ...closed, candidate: DEAR.id }, byRule] };
    const input = { ...CALL, candidates: [SWIFT, DEAR] };
    expect(denialReason(input, decision)).toMatchObject({ scope: 'custom', ruleIds: ['hours'] });
  });
});
