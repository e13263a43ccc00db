import type { PolicyDecision } from '../../src/generated/types.ts';

/** One text for all forms of the same value: keys sorted, and every list too, since a decision's lists are sets. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).sort().join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalText(member)}`)
    .sort()
    .join()}}`;
}

/** Two evaluators, or an evaluator and the oracle, decide alike exactly when these texts are equal. */
export const canonicalDecision = (decision: PolicyDecision): string => canonicalText(decision);
