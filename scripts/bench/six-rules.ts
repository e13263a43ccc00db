import type { PolicyRule } from '../../src/domain/iam-rule.ts';
import { CLIENT_IP, MODEL, PROVIDER } from './workload.ts';

type Unowned<Rule> = Rule extends PolicyRule ? Omit<Rule, 'id' | 'mode'> : never;

/** The rules of each scope: of six kinds, all of which look at the call and let it pass. */
export const SIX_RULES: readonly Unowned<PolicyRule>[] = [
  { ruleType: 'allow_models', ruleValue: { models: [MODEL, 'gpt-5'] } },
  { ruleType: 'deny_models', ruleValue: { models: ['some-other-model', 'openai/*'] } },
  { ruleType: 'allow_providers', ruleValue: { providers: [PROVIDER, 'openai'] } },
  { ruleType: 'deny_providers', ruleValue: { providers: ['some-provider', 'another-provider'] } },
  { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: '10', maxOutputPrice: '30' } },
  { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: [`${CLIENT_IP}/32`, '10.0.0.0/8'] } },
];
