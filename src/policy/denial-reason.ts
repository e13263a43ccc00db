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

/**
 * Why no candidate is permitted (policy/README.md, "Which reason is reported?"): subjects outermost first, of each the steps of
 * its rule types, each dropping the candidates that violate it; the reason is the step that left none.
 * @throws PolicyFailure when the decision permits a candidate, or does not say why not.
 */
export function denialReason(input: PolicyInput, decision: PolicyDecision): DenialReason {
  let standing = new Map(input.candidates.map((candidate) => [candidate.id, candidate.names]));
  for (const { scope, id } of input.subjects) {
    const whose = scope === 'group' ? { scope, group: id } : { scope };
    for (const { effect, kind } of DENIAL_STEPS) {
      const ofStep = decision.violations.filter(
        (violation) =>
          violation.scope === scope &&
          violation.group === whose.group &&
          violation.effect === effect &&
          violation.kind === kind,
      );
      const dropping = ofStep.filter(({ candidate }) => candidate === undefined || standing.has(candidate));
      const left = new Map(standing);
      for (const { candidate } of dropping) {
        if (candidate === undefined) left.clear();
        else left.delete(candidate);
      }
      if (left.size === 0) {
        const offered = effect === 'allow' && kind === 'models' ? firstNames(standing) : dropping.flatMap(valuesOf);
        return {
          ...whose,
          kind,
          effect,
          ruleIds: sortedSet(dropping.flatMap(({ ruleIds }) => ruleIds)),
          values: sortedSet(offered),
        };
      }
      standing = left;
    }
  }
  throw new PolicyFailure('The decision does not deny every candidate.');
}

const valuesOf = ({ values }: PolicyViolation): readonly string[] => values;

const firstNames = (standing: ReadonlyMap<string, readonly string[]>): string[] =>
  [...standing.values()].flatMap((names) => names.slice(0, 1));

const sortedSet = (items: readonly string[]): string[] => [...new Set(items)].sort();
