import type { IpCidrsValue, ModelsValue, ProvidersValue, RuleMode, RuleType } from '../generated/types.ts';

export type RuleEffect = 'allow' | 'deny';
/** What a rule judges. `<effect>_<kind>` is its type. */
export type RuleKind = 'models' | 'providers' | 'pricing' | 'ip_cidrs';

/** A stored pricing value: maxima are plain decimals in USD per million tokens. */
export interface StoredPricingValue {
  readonly pricingType?: 'free' | 'paid';
  readonly maxInputPrice?: string;
  readonly maxOutputPrice?: string;
}

interface RuleOf<Kind extends RuleKind, Value> {
  readonly id: string;
  readonly ruleType: `${RuleEffect}_${Kind}`;
  readonly ruleValue: Readonly<Value>;
  readonly mode: RuleMode;
}

/** An active rule, as far as decisions need it. */
export type PolicyRule =
  | RuleOf<'models', ModelsValue>
  | RuleOf<'providers', ProvidersValue>
  | RuleOf<'pricing', StoredPricingValue>
  | RuleOf<'ip_cidrs', IpCidrsValue>;

export const effectOf = (type: RuleType): RuleEffect => (type.startsWith('allow_') ? 'allow' : 'deny');

const KIND_OF: Readonly<Record<RuleType, RuleKind>> = {
  allow_models: 'models',
  deny_models: 'models',
  allow_providers: 'providers',
  deny_providers: 'providers',
  allow_pricing: 'pricing',
  deny_pricing: 'pricing',
  allow_ip_cidrs: 'ip_cidrs',
  deny_ip_cidrs: 'ip_cidrs',
};

export const kindOf = (type: RuleType): RuleKind => KIND_OF[type];
