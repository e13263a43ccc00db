/**
 * The oracle: policy/reference.md, "How a decision is made" as naive loops over rule records. It shares nothing with src/policy and
 * policy/ (no data document, no address code, no price code), so that what both answer alike is unlikely to be wrong in both.
 */
import type { CanonicalRule, PolicyRule, RuleEffect, RuleKind, StoredPricingValue } from '../../src/domain/iam-rule.ts';
import type {
  PolicyCandidate,
  PolicyDecision,
  PolicyInput,
  PolicySubject,
  PolicyViolation,
  RuleType,
} from '../../src/generated/types.ts';
import { rangesAround } from './oracle-addresses.ts';

/** Type and value of a rule record. */
export type RuleContent = CanonicalRule;

/** An active rule record, as the management API stores it. */
export type OracleRule = PolicyRule;

export interface OracleSubject extends PolicySubject {
  readonly rules: readonly OracleRule[];
}

export interface OracleRequest {
  readonly action: PolicyInput['action'];
  readonly clientIp: string | null;
  /** Outermost scope first. */
  readonly subjects: readonly OracleSubject[];
  readonly candidates: readonly PolicyCandidate[];
}

const TYPES: Readonly<Record<RuleType, { readonly kind: RuleKind; readonly effect: RuleEffect }>> = {
  allow_models: { kind: 'models', effect: 'allow' },
  deny_models: { kind: 'models', effect: 'deny' },
  allow_providers: { kind: 'providers', effect: 'allow' },
  deny_providers: { kind: 'providers', effect: 'deny' },
  allow_pricing: { kind: 'pricing', effect: 'allow' },
  deny_pricing: { kind: 'pricing', effect: 'deny' },
  allow_ip_cidrs: { kind: 'ip_cidrs', effect: 'allow' },
  deny_ip_cidrs: { kind: 'ip_cidrs', effect: 'deny' },
  allow_tags: { kind: 'tags', effect: 'allow' },
  deny_tags: { kind: 'tags', effect: 'deny' },
};

interface Judged {
  /** "[Moderation:] rules on models and prices are skipped, those on providers, addresses and tags apply." */
  readonly skippedForModeration: boolean;
  /** "`values` what the candidate offered"; null: "IP: once per subject, without `candidate`". */
  readonly offered: ((candidate: PolicyCandidate) => readonly string[]) | null;
}

const KINDS: Readonly<Record<RuleKind, Judged>> = {
  models: { skippedForModeration: true, offered: ({ names }) => names },
  providers: { skippedForModeration: false, offered: ({ provider_names }) => provider_names },
  pricing: {
    skippedForModeration: true,
    offered: ({ free, input_price = 'unknown', output_price = 'unknown' }) => [
      `pricingType=${free ? 'free' : 'paid'}`,
      `inputPrice=${input_price}`,
      `outputPrice=${output_price}`,
    ],
  },
  ip_cidrs: { skippedForModeration: false, offered: null },
  // "What is not known is no tag."
  tags: { skippedForModeration: false, offered: ({ tags = [] }) => (tags.length === 0 ? ['tags=unknown'] : tags) },
};

/**
 * What schemas/policy/decision.json describes; every list sorted, violations by their JSON text.
 * @param custom violations by the package `custom` of a bundle
 */
export function oracleDecision(request: OracleRequest, custom: readonly PolicyViolation[] = []): PolicyDecision {
  const enforced = evaluate(request, custom, false);
  const reportRules = request.subjects.flatMap(({ rules }) => rules.filter((rule) => rule.mode === 'report'));
  // "Present exactly when a subject of the call has a rule in mode `report`."
  if (reportRules.length === 0) return enforced;

  // "One shadow decision, with all report rules enforced as well."
  const shadow = evaluate(request, custom, true);
  const wouldAllow = new Set<string>();
  const wouldDeny = new Set<string>();
  for (const candidate of request.candidates) {
    const before = enforced.permitted.includes(candidate.id);
    const after = shadow.permitted.includes(candidate.id);
    for (const rule of reportRules) {
      // "would_allow when it matches a candidate that only the shadow permits."
      const { kind, effect } = TYPES[rule.ruleType];
      if (!before && after && effect === 'allow' && !isSkipped(request, kind)) {
        if (matchingEntries(rule, candidate, request.clientIp).length > 0) wouldAllow.add(rule.id);
      }
      // "would_deny when it stands among the violations of a candidate that enforcement permits and the shadow does not."
      if (before && !after && violationsOf(candidate, shadow).some(({ ruleIds }) => ruleIds.includes(rule.id))) {
        wouldDeny.add(rule.id);
      }
    }
  }
  // "would_allow (and not as a denial)."
  const denyOnly = [...wouldDeny].filter((id) => !wouldAllow.has(id));
  return {
    ...enforced,
    shadow: { permitted: shadow.permitted, would_deny: sorted(denyOnly), would_allow: sorted(wouldAllow) },
  };
}

function evaluate(
  request: OracleRequest,
  custom: readonly PolicyViolation[],
  withReportRules: boolean,
): PolicyDecision {
  const { candidates, clientIp } = request;
  const violations = [...custom];
  // "A candidate must pass all of them [the scopes]. A scope without rules lets everything through."
  for (const { scope, id, rules: all } of request.subjects) {
    // "`group` [...] present exactly when the scope is `group`."
    const whose = scope === 'group' ? { scope, group: id } : { scope };
    const rules = all.filter((rule) => withReportRules || rule.mode === 'enforce');
    for (const type of Object.values(TYPES)) {
      if (isSkipped(request, type.kind)) continue;
      // "IP: once per subject, without `candidate`"; otherwise "each candidate is judged alone".
      for (const candidate of KINDS[type.kind].offered === null ? [undefined] : candidates) {
        const found = judge(rules, type, candidate, clientIp);
        if (found === undefined) continue;
        violations.push({ ...whose, ...type, ...(candidate && { candidate: candidate.id }), ...found });
      }
    }
  }
  violations.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  // "Permitted exactly when no violation names it and no violation lacks a candidate."
  const permitted = candidates.filter((candidate) => violationsOf(candidate, { violations }).length === 0);
  return { permitted: sorted(permitted.map(({ id }) => id)), violations };
}

function isSkipped({ action }: OracleRequest, kind: RuleKind): boolean {
  return action === 'moderation' && KINDS[kind].skippedForModeration;
}

function violationsOf(candidate: PolicyCandidate, { violations }: { violations: PolicyViolation[] }) {
  return violations.filter((violation) => violation.candidate === undefined || violation.candidate === candidate.id);
}

/** The violation of one subject by all its rules of one kind and effect, if any. */
function judge(
  scopeRules: readonly OracleRule[],
  { kind, effect }: (typeof TYPES)[RuleType],
  candidate: PolicyCandidate | undefined,
  clientIp: string | null,
): { ruleIds: string[]; values: string[] } | undefined {
  const rules = scopeRules.filter(({ ruleType }) => TYPES[ruleType].kind === kind && TYPES[ruleType].effect === effect);
  if (rules.length === 0) return undefined;
  const everyId = sorted(rules.map(({ id }) => id));
  // "[Unknown client address:] denied when a scope has any active IP rule, allow or deny."
  if (kind === 'ip_cidrs' && clientIp === null) return { ruleIds: everyId, values: ['unknown'] };

  const matching = rules.filter((rule) => matchingEntries(rule, candidate, clientIp).length > 0);
  if (effect === 'allow') {
    // "Same kind of allow: union. Different kinds: AND." "`ruleIds` all of them, `values` what the candidate offered."
    return matching.length > 0 ? undefined : { ruleIds: everyId, values: sorted(offered(kind, candidate, clientIp)) };
  }
  // "Any matching deny rejects, whatever the allows say." "The matching rules and their matching entries."
  if (matching.length === 0) return undefined;
  const entries = matching.flatMap((rule) => matchingEntries(rule, candidate, clientIp));
  return { ruleIds: sorted(matching.map(({ id }) => id)), values: sorted(entries) };
}

/** The entries by which the rule matches; none: it does not match. */
function matchingEntries(rule: OracleRule, candidate: PolicyCandidate | undefined, clientIp: string | null): string[] {
  switch (rule.ruleType) {
    case 'allow_models':
    case 'deny_models':
      return rule.ruleValue.models.filter((entry) => candidate?.names.some((name) => entryMatchesName(entry, name)));
    case 'allow_providers':
    case 'deny_providers':
      // "Entry equals the provider id; `custom` any custom provider; `custom:<name>` that one."
      return rule.ruleValue.providers.filter((entry) => candidate?.provider_names.some((name) => name === entry));
    case 'allow_pricing': {
      // "Allow: every stated condition holds."
      const conditions = candidate === undefined ? [] : priceConditions(rule.ruleValue, candidate);
      return conditions.every(({ holds }) => holds) ? conditions.map(({ text }) => text) : [];
    }
    case 'deny_pricing': {
      // "Deny: the type matches, or a stated maximum is exceeded."
      const conditions = candidate === undefined ? [] : priceConditions(rule.ruleValue, candidate);
      return conditions.filter(({ trips }) => trips).map(({ text }) => text);
    }
    case 'allow_ip_cidrs':
    case 'deny_ip_cidrs':
      return clientIp === null ? [] : rangesAround(clientIp, rule.ruleValue.ipCidrs);
    case 'allow_tags':
    case 'deny_tags':
      // "An entry equals one of its tags, or is a prefix of one."
      return rule.ruleValue.tags.filter((entry) => candidate?.tags?.some((tag) => entryMatchesName(entry, tag)));
  }
}

/** "Equals one of the candidate's names [...] An entry that ends in `*` is a prefix of a name." */
function entryMatchesName(entry: string, name: string): boolean {
  return entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : entry === name;
}

function priceConditions(value: StoredPricingValue, candidate: PolicyCandidate) {
  const conditions: { text: string; holds: boolean; trips: boolean }[] = [];
  if (value.pricingType !== undefined) {
    const holds = (value.pricingType === 'free') === candidate.free;
    conditions.push({ text: `pricingType=${value.pricingType}`, holds, trips: holds });
  }
  const addMaximum = (name: 'input' | 'output', maximum: string | undefined, price: number | undefined) => {
    if (maximum === undefined) return;
    // "Equal to the maximum passes." "An unknown price satisfies no allow maximum and trips every deny maximum."
    const holds = price !== undefined && BigInt(price) <= picoPerToken(maximum);
    // "The reason is then that the price is unknown, and not that it lies above the maximum."
    const text = price === undefined ? `${name}Price=unknown` : `max${capital(name)}Price=${picoPerToken(maximum)}`;
    conditions.push({ text, holds, trips: !holds });
  };
  addMaximum('input', value.maxInputPrice, candidate.input_price);
  addMaximum('output', value.maxOutputPrice, candidate.output_price);
  return conditions;
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

/** "USD per million tokens, decimal strings [...] inside the policy integer pico-dollars per token." */
export function picoPerToken(usdPerMillion: string): bigint {
  const [whole = '', places = ''] = usdPerMillion.split('.');
  return BigInt(whole) * 1_000_000n + BigInt(places.padEnd(6, '0'));
}

function offered(kind: RuleKind, candidate: PolicyCandidate | undefined, clientIp: string | null): readonly string[] {
  if (candidate === undefined) return clientIp === null ? [] : [clientIp];
  return KINDS[kind].offered?.(candidate) ?? [];
}

function sorted(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}
