import type { PolicyRule, StoredPricingValue } from '../domain/iam-rule.ts';
import type { PolicyCandidate, PolicyInput, RuleType } from '../generated/types.ts';
import { compileSubjectRules, dataDocument } from './data-document.ts';
import type { CandidateAttribute } from './input-document.ts';
import type { Pdp } from './pdp.ts';
import { PolicyFailure } from './policy-failure.ts';

/**
 * A rule that denies the call below, one of the same type that lets it pass, and what of the call both look at that may be
 * unknown, in which case both deny it; null: nothing.
 */
type Case = readonly [denying: PolicyRule, passing: PolicyRule, unknown: CandidateAttribute | 'client_ip' | null];

/** It lacks nothing. */
export const SWIFT: Required<PolicyCandidate> = {
  id: 'acme/swift-1',
  names: ['swift-1', 'acme/swift-1'],
  provider_names: ['acme'],
  free: false,
  input_price: 2_000_000,
  output_price: 4_000_000,
  tags: ['region:eu', 'stability:stable'],
};

/** By one key from a known address. */
export const CALL: PolicyInput = {
  action: 'chat',
  client_ip: '192.0.2.1',
  subjects: [{ scope: 'key', id: 'key_1' }],
  candidates: [SWIFT],
};

const base = { id: 'rule_1', mode: 'enforce' } as const;
const models = (ruleType: 'allow_models' | 'deny_models', entry: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { models: [entry] },
});
const providers = (ruleType: 'allow_providers' | 'deny_providers', entry: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { providers: [entry] },
});
const pricing = (ruleType: 'allow_pricing' | 'deny_pricing', ruleValue: StoredPricingValue): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue,
});
const range = (ruleType: 'allow_ip_cidrs' | 'deny_ip_cidrs', cidr: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { ipCidrs: [cidr] },
});
const tags = (ruleType: 'allow_tags' | 'deny_tags', entry: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { tags: [entry] },
});

/** The start of the gateway, the tests and the mutants of the policy judge by them. */
export const CASES: Readonly<Record<RuleType, readonly [Case, ...Case[]]>> = {
  deny_models: [
    [models('deny_models', 'swift-1'), models('deny_models', 'slow-1'), null],
    [models('deny_models', 'acme/*'), models('deny_models', 'other/*'), null],
  ],
  allow_models: [
    [models('allow_models', 'slow-1'), models('allow_models', 'swift-1'), null],
    [models('allow_models', 'slow-*'), models('allow_models', 'swift-*'), null],
  ],
  deny_providers: [[providers('deny_providers', 'acme'), providers('deny_providers', 'other'), null]],
  allow_providers: [[providers('allow_providers', 'other'), providers('allow_providers', 'acme'), null]],
  deny_pricing: [
    [
      pricing('deny_pricing', { maxInputPrice: '1.999999' }),
      pricing('deny_pricing', { maxInputPrice: '2' }),
      'input_price',
    ],
    [
      pricing('deny_pricing', { maxOutputPrice: '3.999999' }),
      pricing('deny_pricing', { maxOutputPrice: '4' }),
      'output_price',
    ],
  ],
  allow_pricing: [
    [
      pricing('allow_pricing', { maxInputPrice: '1.999999' }),
      pricing('allow_pricing', { maxInputPrice: '2' }),
      'input_price',
    ],
    [
      pricing('allow_pricing', { maxOutputPrice: '3.999999' }),
      pricing('allow_pricing', { maxOutputPrice: '4' }),
      'output_price',
    ],
  ],
  deny_ip_cidrs: [[range('deny_ip_cidrs', '192.0.2.0/24'), range('deny_ip_cidrs', '198.51.100.0/24'), 'client_ip']],
  allow_ip_cidrs: [[range('allow_ip_cidrs', '198.51.100.0/24'), range('allow_ip_cidrs', '192.0.2.0/24'), 'client_ip']],
  deny_tags: [
    [tags('deny_tags', 'region:eu'), tags('deny_tags', 'region:us'), null],
    [tags('deny_tags', 'region:*'), tags('deny_tags', 'retention:*'), null],
  ],
  allow_tags: [
    [tags('allow_tags', 'region:us'), tags('allow_tags', 'region:eu'), 'tags'],
    [tags('allow_tags', 'retention:*'), tags('allow_tags', 'stability:*'), 'tags'],
  ],
};

/**
 * Null when the policy denies and permits what every policy of ours must, for each rule kind and effect; else the first
 * fault. A policy whose rules were folded away by the compiler, or that denies everything, does not get past this.
 */
export function selfTestFault(pdp: Pdp): string | null {
  for (const [denying, passing, unknown] of Object.values(CASES).flat()) {
    if (!outcomeIs(pdp, CALL, denying, 'denied')) return `${describe(denying)} does not deny.`;
    if (!outcomeIs(pdp, CALL, passing, 'permitted')) return `${describe(passing)} does not permit.`;
    if (unknown === null) continue;
    const call = callWithout(unknown);
    for (const rule of [denying, passing]) {
      if (!outcomeIs(pdp, call, rule, 'denied')) return `${describe(rule)} does not deny an unknown ${unknown}.`;
    }
  }
  return judgesUnknownSubject(pdp) ? 'A subject whose rules are missing is judged.' : null;
}

const callWithout = (unknown: CandidateAttribute | 'client_ip'): PolicyInput =>
  unknown === 'client_ip'
    ? { ...CALL, client_ip: null }
    : { ...CALL, candidates: [{ ...SWIFT, [unknown]: undefined }] };

function judgesUnknownSubject(pdp: Pdp): boolean {
  try {
    pdp.decide(CALL, dataDocument([]));
    return true;
  } catch (failure) {
    if (failure instanceof PolicyFailure) return false;
    throw failure;
  }
}

/** Both entrypoints must say so, and a denial must name the rule. */
function outcomeIs(pdp: Pdp, call: PolicyInput, rule: PolicyRule, outcome: 'denied' | 'permitted'): boolean {
  const data = dataDocument([{ id: 'key_1', rules: compileSubjectRules([rule]) }]);
  const { permitted, violations } = pdp.decide(call, data);
  const listed = pdp.permitted(call, data);
  if (outcome === 'permitted') return permitted.length === 1 && listed.length === 1 && violations.length === 0;
  const [violation] = violations;
  return listed.length === 0 && violations.length === 1 && violation?.ruleIds.join() === rule.id;
}

const describe = (rule: PolicyRule): string => `${rule.ruleType} ${JSON.stringify(rule.ruleValue)}`;
