import type { LintFinding, PolicySubject } from '../generated/types.ts';

/** A finding about a subject, or about rules of it; `predicate` goes on from their names. */
export function finding(
  code: LintFinding['code'],
  { scope, id }: PolicySubject,
  rules: readonly { readonly id: string }[],
  predicate: string,
): LintFinding {
  const ruleIds = rules.map((rule) => rule.id);
  const about = ruleIds.length === 0 ? `The ${scope}` : ruleIds.length === 1 ? 'The rule' : 'The rules';
  return { code, scope, subjectId: id, ruleIds, message: `${about} ${ruleIds.join(', ') || id}: ${predicate}` };
}
