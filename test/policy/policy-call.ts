/** A small call and its data document, for tests that vary one thing. */
import type { PolicyRule, StoredPricingValue } from '../../src/domain/iam-rule.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../src/policy/data-document.ts';

export { CALL, SWIFT } from '../../src/policy/self-test.ts';

export const dataOfKey = (...rules: PolicyRule[]): DataDocument =>
  dataDocument([{ id: 'key_1', rules: compileSubjectRules(rules) }]);

type Effect = 'allow' | 'deny';

export const modelRule = (id: string, effect: Effect, ...models: string[]): PolicyRule => ({
  id,
  ruleType: `${effect}_models`,
  ruleValue: { models },
  mode: 'enforce',
});

export const providerRule = (id: string, effect: Effect, ...providers: string[]): PolicyRule => ({
  id,
  ruleType: `${effect}_providers`,
  ruleValue: { providers },
  mode: 'enforce',
});

export const pricingRule = (id: string, effect: Effect, ruleValue: StoredPricingValue): PolicyRule => ({
  id,
  ruleType: `${effect}_pricing`,
  ruleValue,
  mode: 'enforce',
});

export const ipRule = (id: string, effect: Effect, ...ipCidrs: string[]): PolicyRule => ({
  id,
  ruleType: `${effect}_ip_cidrs`,
  ruleValue: { ipCidrs },
  mode: 'enforce',
});

export const denyModels = (...models: string[]): PolicyRule => modelRule('rule_1', 'deny', ...models);

export const DENIED = {
  permitted: [],
  violations: [
    {
      scope: 'key',
      kind: 'models',
      effect: 'deny',
      candidate: 'acme/swift-1',
      ruleIds: ['rule_1'],
      values: ['swift-1'],
    },
  ],
};
