import type { PolicyRule } from '../../domain/iam-rule.ts';
import { storedRule } from '../../domain/rule-content.ts';
import { compileSubjectRules } from '../../policy/data-document.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';

const policyRule = (record: RuleRecord): PolicyRule => ({
  ...storedRule(record),
  id: record.id,
  mode: record.mode,
});

/** The compiled text of a subject: its active rules, as the policy's data document holds them. */
export const compileRules = (rules: readonly RuleRecord[]): string =>
  compileSubjectRules(rules.filter(({ status }) => status === 'active').map(policyRule));
