import { describe, expect, it } from 'vitest';
import { checkBounds } from '../../../src/admin/rules/rule-edits.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import type { CanonicalRule } from '../../../src/domain/iam-rule.ts';
import { canonicalRule } from '../../../src/domain/rule-content.ts';

const models = (count: number, suffix = ''): CanonicalRule =>
  canonicalRule({
    ruleType: 'deny_models',
    ruleValue: { models: Array.from({ length: count }, (_, index) => `model-${index}${suffix}`) },
  });

const times = (count: number, rule: CanonicalRule): CanonicalRule[] => new Array<CanonicalRule>(count).fill(rule);

const together = 'The rules of a key, a member, a group or an organization may have at most';

describe('the rules of one subject', () => {
  it('may be as many as the bounds say', () => {
    expect(() => checkBounds(times(200, models(1)))).not.toThrow();
    expect(() => checkBounds(times(5, models(1000)))).not.toThrow();
    expect(() => checkBounds([models(50, '*')])).not.toThrow();
  });

  it.each([
    [times(201, models(1)), `${together} 200 rules together; this would make 201.`, null],
    [[...times(5, models(1000)), models(1)], `${together} 5000 values together; this would make 5001.`, '/ruleValue'],
    [
      [models(50, '*'), models(1, '*')],
      `${together} 50 entries that end in * together; this would make 51.`,
      '/ruleValue',
    ],
  ])('may not be more (%#)', (rules, message, param) => {
    const check = () => checkBounds(rules);
    expect(check).toThrow(ApiError);
    expect(check).toThrow(expect.objectContaining({ status: 400, message, param }));
  });
});
