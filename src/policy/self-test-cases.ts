import type { PolicyRule } from '../domain/iam-rule.ts';
import type { PolicyInput } from '../generated/types.ts';
import { compileSubjectRules, dataDocument } from './data-document.ts';
import type { Pdp } from './pdp.ts';
import { PolicyFailure } from './policy-failure.ts';

/** A rule that denies the call below, and one of the same type that lets it pass. */
type Case = readonly [denying: PolicyRule, passing: PolicyRule];

const CALL: PolicyInput = {
  action: 'chat',
  client_ip: '192.0.2.1',
  subjects: [{ scope: 'key', id: 'key_test' }],
  candidates: [
    {
      id: 'acme/swift-1',
      names: ['swift-1', 'acme/swift-1'],
      provider_names: ['acme'],
      free: false,
      input_price: 2_000_000,
      output_price: 4_000_000,
    },
  ],
};

const base = { id: 'rule_test', mode: 'enforce' } as const;
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
const inputCap = (ruleType: 'allow_pricing' | 'deny_pricing', maxInputPrice: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { maxInputPrice },
});
const range = (ruleType: 'allow_ip_cidrs' | 'deny_ip_cidrs', cidr: string): PolicyRule => ({
  ...base,
  ruleType,
  ruleValue: { ipCidrs: [cidr] },
});

const CASES: readonly Case[] = [
  [models('deny_models', 'swift-1'), models('deny_models', 'slow-1')],
  [models('deny_models', 'acme/*'), models('deny_models', 'other/*')],
  [models('allow_models', 'slow-1'), models('allow_models', 'swift-1')],
  [models('allow_models', 'slow-*'), models('allow_models', 'swift-*')],
  [providers('deny_providers', 'acme'), providers('deny_providers', 'other')],
  [providers('allow_providers', 'other'), providers('allow_providers', 'acme')],
  [inputCap('deny_pricing', '1.999999'), inputCap('deny_pricing', '2')],
  [inputCap('allow_pricing', '1.999999'), inputCap('allow_pricing', '2')],
  [range('deny_ip_cidrs', '192.0.2.0/24'), range('deny_ip_cidrs', '198.51.100.0/24')],
  [range('allow_ip_cidrs', '198.51.100.0/24'), range('allow_ip_cidrs', '192.0.2.0/24')],
];

/**
 * Null when the policy denies and permits what every policy of ours must, for each rule kind and effect; else the first
 * fault. A policy whose rules were folded away by the compiler, or that denies everything, does not get past this.
 */
export function selfTestFault(pdp: Pdp): string | null {
  for (const [denying, passing] of CASES) {
    if (!outcomeIs(pdp, denying, 'denied')) return `${describe(denying)} does not deny.`;
    if (!outcomeIs(pdp, passing, 'permitted')) return `${describe(passing)} does not permit.`;
  }
  return judgesUnknownSubject(pdp) ? 'A subject whose rules are missing is judged.' : null;
}

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
function outcomeIs(pdp: Pdp, rule: PolicyRule, outcome: 'denied' | 'permitted'): boolean {
  const data = dataDocument([{ id: 'key_test', rules: compileSubjectRules([rule]) }]);
  const { permitted, violations } = pdp.decide(CALL, data);
  const listed = pdp.permitted(CALL, data);
  if (outcome === 'permitted') return permitted.length === 1 && listed.length === 1 && violations.length === 0;
  const [violation] = violations;
  return listed.length === 0 && violations.length === 1 && violation?.ruleIds.join() === rule.id;
}

const describe = (rule: PolicyRule): string => `${rule.ruleType} ${JSON.stringify(rule.ruleValue)}`;
