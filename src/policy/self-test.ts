import type { PolicyRule, StoredPricingValue } from '../domain/iam-rule.ts';
import type { PolicyCandidate, PolicyInput, PolicySubject, RuleType } from '../generated/types.ts';
import { BundleRefused } from './archive/read-archive.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from './data-document.ts';
import type { CandidateAttribute } from './input-document.ts';
import type { Pdp } from './pdp.ts';

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

/** Each case is tried for each of them, while the others have no rules. */
const SUBJECTS: readonly PolicySubject[] = [
  { scope: 'organization', id: 'org_1' },
  { scope: 'group', id: 'grp_1' },
  { scope: 'member', id: 'mem_1' },
  { scope: 'key', id: 'key_1' },
];

/**
 * Null when the policy denies and permits what every policy of ours must, for each rule kind, effect and scope; else the first
 * fault. A policy whose rules were folded away by the compiler, or that denies everything, does not get past this.
 */
export function selfTestFault(pdp: Pdp): string | null {
  for (const subject of SUBJECTS) {
    for (const each of Object.values(CASES).flat()) {
      const fault = faultFor(pdp, subject, each);
      if (fault !== null) return `${fault.slice(0, -1)} for ${ONE_OF[subject.scope]}.`;
    }
  }
  return judgesUnknownSubject(pdp) ? 'A subject whose rules are missing is judged.' : null;
}

/** Whether a policy that passes the self-test denies its call where no rule does: one that denies everything does. */
export const deniesCall = (pdp: Pdp): boolean =>
  pdp.permitted(CALL, dataDocument([{ id: 'key_1', rules: compileSubjectRules([]) }])).length === 0;

const ONE_OF: Readonly<Record<PolicySubject['scope'], string>> = {
  organization: 'an organization',
  group: 'a group',
  member: 'a member',
  key: 'a key',
};

function faultFor(pdp: Pdp, subject: PolicySubject, [denying, passing, unknown]: Case): string | null {
  const outcome = (call: PolicyInput, rule: PolicyRule) => outcomeOf(pdp, call, subject, rule);
  const call = { ...CALL, subjects: [...SUBJECTS] };
  if (outcome(call, denying) !== 'denied') return `${describe(denying)} does not deny.`;
  if (outcome(call, passing) !== 'permitted') return `${describe(passing)} does not permit.`;
  if (unknown === null) return null;
  const other = callWithout(call, unknown);
  const open = [denying, passing].find((rule) => outcome(other, rule) !== 'denied');
  return open === undefined ? null : `${describe(open)} does not deny an unknown ${unknown}.`;
}

const callWithout = (call: PolicyInput, unknown: CandidateAttribute | 'client_ip'): PolicyInput =>
  unknown === 'client_ip'
    ? { ...call, client_ip: null }
    : { ...call, candidates: [{ ...SWIFT, [unknown]: undefined }] };

function judgesUnknownSubject(pdp: Pdp): boolean {
  try {
    pdp.decide(CALL, dataDocument([]));
    return true;
  } catch (failure) {
    if (failure instanceof PolicyFailure) return false;
    throw failure;
  }
}

/** As both entrypoints say; a denial must name the rule and its scope. */
function outcomeOf(
  pdp: Pdp,
  call: PolicyInput,
  { scope, id }: PolicySubject,
  rule: PolicyRule,
): 'denied' | 'permitted' | 'unclear' {
  const data = dataDocument(
    SUBJECTS.map((each) => ({ id: each.id, rules: compileSubjectRules(each.id === id ? [rule] : []) })),
  );
  const { permitted, violations } = pdp.decide(call, data);
  const listed = pdp.permitted(call, data);
  // A package `custom` may deny more, at this moment and for this call: that is its own concern.
  const ofRules = violations.filter(({ kind }) => kind !== 'custom');
  const [violation] = ofRules;
  if (violation === undefined) {
    const passing = violations.length === 0 ? 1 : 0;
    return permitted.length === passing && listed.length === passing ? 'permitted' : 'unclear';
  }
  const isOfRule = ofRules.length === 1 && violation.scope === scope && violation.ruleIds.join() === rule.id;
  return isOfRule && listed.length === 0 ? 'denied' : 'unclear';
}

const describe = (rule: PolicyRule): string => `${rule.ruleType} ${JSON.stringify(rule.ruleValue)}`;

/** @throws BundleRefused when the policy fails a case */
export function passSelfTest(pdp: Pdp): void {
  let fault: string | null;
  try {
    fault = selfTestFault(pdp);
  } catch (error) {
    fault = causesOf(error);
  }
  if (fault !== null) throw new BundleRefused('self_test', `It fails the self-test: ${fault}`);
}

/** The message of an error, and of its causes. */
export const causesOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} ${causesOf(error.cause)}`;
};
