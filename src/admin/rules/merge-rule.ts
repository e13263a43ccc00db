import { invalidRequest } from '../../domain/errors.ts';
import { type RuleContent, readRule } from '../../domain/rule-content.ts';
import type { RulePatch } from '../../generated/types.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';

/**
 * A rule with a change applied: within its type the named fields of a value replace, null removes one, the others stay
 * (policy/README.md, "Writing a rule"). @throws ApiError 400 for what is no rule then, and for another type without a value
 */
export function mergedRule(present: RuleRecord, patch: RulePatch): RuleContent {
  const { failOnNewAccess: _, ruleType = present.ruleType, ruleValue, ...others } = patch;
  const isSameType = ruleType === present.ruleType;
  if (!isSameType && ruleValue === undefined) {
    throw invalidRequest('/ruleValue is missing: another rule type needs a whole value.', '/ruleValue');
  }
  const { status, mode, description } = present;
  return readRule({
    status,
    mode,
    description,
    ...others,
    ruleType,
    ruleValue: isSameType
      ? mergedValue(readRule({ ruleType, ruleValue: present.ruleValue }).ruleValue, ruleValue)
      : ruleValue,
  });
}

const mergedValue = (present: object, change: object = {}): object =>
  Object.fromEntries(Object.entries({ ...present, ...change }).filter(([, value]) => value !== null));
