import type { PolicyRule } from '../domain/iam-rule.ts';
import { validateRuleCreate } from '../generated/validators.js';
import { compileSubjectRules } from '../policy/data-document.ts';
import type { RuleRecord } from '../store/rules.ts';
import { type CanonicalRule, canonicalRule } from './rule-content.ts';

/** Type and canonical value of a stored rule. Throws for one that we would not have stored, so that nothing judges by it. */
export function storedRule({ id, ruleType, canonicalValue }: RuleRecord): CanonicalRule {
  const rule: unknown = { ruleType, ruleValue: canonicalValue };
  if (!validateRuleCreate(rule)) throw new Error(`The stored rule ${id} is not valid.`);
  return canonicalRule(rule);
}

const policyRule = (record: RuleRecord): PolicyRule => ({
  ...storedRule(record),
  id: record.id,
  mode: record.mode,
});

/** The compiled text of a subject: its active rules, as the policy's data document holds them. */
export const compileRules = (rules: readonly RuleRecord[]): string =>
  compileSubjectRules(rules.filter(({ status }) => status === 'active').map(policyRule));
