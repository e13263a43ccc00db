import { DENIAL_STEPS } from '../domain/iam-rule.ts';
import type { PolicyDecision, PolicyInput, PolicyViolation } from '../generated/types.ts';
import { PolicyFailure } from './policy-failure.ts';

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
 * Why no candidate is permitted (policy/README.md, "Which reason is reported?"): subjects outermost first, of each the steps of
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
  const offered = effect === 'allow' && kind === 'models' ? firstNames(standing) : dropping.flatMap(valuesOf);
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

const valuesOf = ({ values }: PolicyViolation): readonly string[] => values;

const firstNames = (standing: ReadonlyMap<string, readonly string[]>): string[] =>
  [...standing.values()].flatMap((names) => names.slice(0, 1));

const sortedSet = (items: readonly string[]): string[] => [...new Set(items)].sort();
