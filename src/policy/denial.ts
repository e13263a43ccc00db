import { DENIAL_STEPS } from '../domain/iam-rule.ts';
import { withName } from '../domain/id.ts';
import { formatUsdPerMillion } from '../domain/limits.ts';
import type { PolicyDecision, PolicyInput, PolicyViolation, RuleType } from '../generated/types.ts';
import { entryOf } from '../lib/text.ts';
import { PolicyFailure } from './data-document.ts';

/** The one step that a denial is reported for. */
export interface DenialReason {
  readonly scope: PolicyViolation['scope'];
  /** Id of the group, where the scope is that. */
  readonly group?: string;
  readonly kind: PolicyViolation['kind'];
  readonly effect: PolicyViolation['effect'];
  /** Sorted. Allow: all rules of the kind in the scope. Deny: those that match a candidate that stood until here. */
  readonly ruleIds: readonly string[];
  /** Sorted. As in the violations, but a model is named by its first (canonical) name only. */
  readonly values: readonly string[];
}

/** The last one: what rules deny is never put down to the package `custom`. */
const CUSTOM = { scope: 'custom' } as const;
const CUSTOM_STEP = { effect: 'deny', kind: 'custom' } as const;

/**
 * Why no candidate is permitted (policy/reference.md, "The reported reason"): subjects outermost first, of each the steps of
 * its rule types, then the package `custom` of a bundle, each dropping the candidates that violate it; the reason is the step that
 * left none.
 * @throws PolicyFailure when the decision permits a candidate, or does not say why not.
 */
export function denialReason(input: PolicyInput, { violations }: PolicyDecision): DenialReason {
  const standing = new Map(input.candidates.map((candidate) => [candidate.id, candidate.names]));
  for (const { scope, id } of input.subjects) {
    const whose = scope === 'group' ? { scope, group: id } : { scope };
    for (const step of DENIAL_STEPS) {
      const reason = reasonAt(standing, violations, whose, step);
      if (reason !== undefined) return reason;
    }
  }
  const reason = reasonAt(standing, violations, CUSTOM, CUSTOM_STEP);
  if (reason === undefined) throw new PolicyFailure('The decision does not deny every candidate.');
  return reason;
}

/** Drops the candidates that violate a step; the reason, if that leaves none. */
function reasonAt(
  standing: Map<string, readonly string[]>,
  violations: readonly PolicyViolation[],
  whose: Pick<PolicyViolation, 'scope' | 'group'>,
  { effect, kind }: Pick<PolicyViolation, 'effect' | 'kind'>,
): DenialReason | undefined {
  const dropping = violations.filter(
    (violation) =>
      violation.scope === whose.scope &&
      violation.group === whose.group &&
      violation.effect === effect &&
      violation.kind === kind &&
      (violation.candidate === undefined || standing.has(violation.candidate)),
  );
  if (dropping.length === 0) return undefined;
  const offered = effect === 'allow' && kind === 'models' ? firstNames(standing) : dropping.flatMap(violationValues);
  for (const { candidate } of dropping) {
    if (candidate === undefined) standing.clear();
    else standing.delete(candidate);
  }
  if (standing.size > 0) return undefined;
  return {
    ...whose,
    kind,
    effect,
    ruleIds: sortedSet(dropping.flatMap(({ ruleIds }) => ruleIds)),
    values: sortedSet(offered),
  };
}

const violationValues = ({ values }: PolicyViolation): readonly string[] => values;

const firstNames = (standing: ReadonlyMap<string, readonly string[]>): string[] =>
  [...standing.values()].flatMap((names) => names.slice(0, 1));

const sortedSet = (items: readonly string[]): string[] => [...new Set(items)].sort();

/** Names that people gave to rules and groups, by their ids; rules without a description are missing. */
export type RuleNames = ReadonlyMap<string, string | null>;

/** The ids of all that the sentence names. */
export const namedIn = ({ ruleIds, group }: DenialReason): readonly string[] =>
  group === undefined ? ruleIds : [...ruleIds, group];

/** A reason, with the rules as the sentence names them. */
interface NamedReason extends DenialReason {
  readonly rules: readonly string[];
}

/**
 * The sentence of a 403 (policy/reference.md, "How a decision is made"): `Access denied: <reason>`, naming the kind, the value and
 * the rules, and whose rules they are when they are not the key's own. The only place where the policy's codes become prose.
 * @param names of the organization's own rules and groups
 */
export function denialMessage(reason: DenialReason, names: RuleNames): string {
  const rules = reason.ruleIds.map((id) => withName(id, names.get(id)));
  const said =
    reason.kind === 'custom'
      ? `${reason.values.join('; ')} (${rules.join(', ')})`
      : WORDING[`${reason.effect}_${reason.kind}`]({ ...reason, rules });
  return `Access denied: ${said}.${ORIGIN[reason.scope](reason, names)}`;
}

const ORIGIN: Readonly<Record<DenialReason['scope'], (reason: DenialReason, names: RuleNames) => string>> = {
  organization: () => ' This is an organization IAM rule set by the org admin.',
  group: ({ group = '' }, names) => ` This is a group IAM rule (${names.get(group) ?? group}) set by the org admin.`,
  member: () => ' This is an organization member IAM rule set by the org admin.',
  key: () => '',
  custom: () => '',
};

const WORDING: Readonly<Record<RuleType, (reason: NamedReason) => string>> = {
  deny_models: (reason) => `model not allowed: ${valuesOf(reason)} ${be(reason)} denied by ${ruleNames(reason)}`,
  allow_models: (reason) =>
    `model not allowed: ${valuesOf(reason)} ${be(reason)} not among the models allowed by ${ruleNames(reason)}`,
  deny_providers: (reason) => `provider blocked: ${valuesOf(reason)} ${be(reason)} denied by ${ruleNames(reason)}`,
  allow_providers: (reason) =>
    `provider blocked: ${valuesOf(reason)} ${be(reason)} not among the providers allowed by ${ruleNames(reason)}`,
  deny_pricing: (reason) =>
    `pricing constraint exceeded: ${valuesOf(reason)} ${be(reason)} denied by ${ruleNames(reason)}`,
  allow_pricing: (reason) =>
    `pricing constraint exceeded: ${valuesOf(reason)} ${be(reason)} not allowed by ${ruleNames(reason)}`,
  deny_ip_cidrs: (reason) =>
    isUnknownAddress(reason)
      ? unknownAddress(reason)
      : `IP not permitted: the client address lies in ${valuesOf(reason)}, denied by ${ruleNames(reason)}`,
  allow_ip_cidrs: (reason) =>
    isUnknownAddress(reason)
      ? unknownAddress(reason)
      : `IP not permitted: the client address ${valuesOf(reason)} is not in the ranges allowed by ${ruleNames(reason)}`,
  deny_tags: (reason) => `model not allowed: ${tagsOf(reason)} ${be(reason)} denied by ${ruleNames(reason)}`,
  allow_tags: (reason) => {
    const known = withoutUnknown(reason);
    return known.values.length === 0
      ? `model not allowed: it has no tags, and ${ruleNames(reason)} ${reason.rules.length === 1 ? 'asks' : 'ask'} for some`
      : `model not allowed: ${tagsOf(known)} ${be(known)} not among the tags allowed by ${ruleNames(reason)}`;
  },
};

/** The policy's value for a candidate without tags. */
const NO_TAGS = 'tags=unknown';

/** Among several candidates some may have no tag to name. */
const withoutUnknown = (reason: NamedReason): NamedReason => ({
  ...reason,
  values: reason.values.filter((value) => value !== NO_TAGS),
});

const tagsOf = (reason: NamedReason): string => `${reason.values.length === 1 ? 'tag' : 'tags'} ${valuesOf(reason)}`;

const unknownAddress = (reason: NamedReason): string =>
  `IP not permitted: the client address is unknown, and ${ruleNames(reason)} cannot be checked without it`;

const isUnknownAddress = ({ values }: DenialReason): boolean => values.includes('unknown');

/** Prices are of several sorts, so that an `and` belongs between them; other values are a list of one sort. */
const PRICES = new Intl.ListFormat('en-GB');

function valuesOf({ kind, values }: DenialReason): string {
  const texts = values.map((value) => valueText(kind, value));
  return kind === 'pricing' ? PRICES.format(texts) : texts.join(', ');
}

const be = ({ values }: DenialReason): string => (values.length === 1 ? 'is' : 'are');

const ruleNames = ({ rules }: NamedReason): string => `${rules.length === 1 ? 'rule' : 'rules'} ${rules.join(', ')}`;

const PRICE_LABEL: Readonly<Record<string, string>> = {
  inputPrice: 'input price',
  outputPrice: 'output price',
  maxInputPrice: 'input price above',
  maxOutputPrice: 'output price above',
};

/** `inputPrice=<pico>` as `input price 2.5 USD per million tokens`, `pricingType=paid` as `pricing type paid`. */
function priceText(value: string): string {
  const [name = '', amount = ''] = value.split('=');
  const label = entryOf(PRICE_LABEL, name);
  if (label === undefined) return `pricing type ${amount}`;
  if (amount === 'unknown') return `${label} unknown`;
  return `${label} ${formatUsdPerMillion(BigInt(amount))} USD per million tokens`;
}

const asItIs = (value: string): string => value;

const VALUE_TEXT: Readonly<Record<DenialReason['kind'], (value: string) => string>> = {
  models: asItIs,
  providers: asItIs,
  pricing: priceText,
  ip_cidrs: asItIs,
  tags: (value) => (value === NO_TAGS ? 'no tags' : value),
  custom: asItIs,
};

/** A value of a violation, for people. */
export const valueText = (kind: DenialReason['kind'], value: string): string => VALUE_TEXT[kind](value);

/**
 * Candidates that a decision on record permitted: a candidate that no violation names; a violation without a candidate counts
 * for all (schemas/policy/decision.json).
 */
export function permittedBy({ candidates }: PolicyInput, violations: readonly PolicyViolation[]): string[] {
  const named = new Set(violations.map(({ candidate }) => candidate));
  return named.has(undefined) ? [] : candidates.flatMap(({ id }) => (named.has(id) ? [] : [id]));
}
