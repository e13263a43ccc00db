import type { PolicyInput, PolicyViolation } from '../generated/types.ts';

/** What a decision on record permitted: a candidate that no violation names; one without a candidate counts for all (schemas/policy/decision.json). */
export function permittedBy({ candidates }: PolicyInput, violations: readonly PolicyViolation[]): string[] {
  const named = new Set(violations.map(({ candidate }) => candidate));
  return named.has(undefined) ? [] : candidates.flatMap(({ id }) => (named.has(id) ? [] : [id]));
}
