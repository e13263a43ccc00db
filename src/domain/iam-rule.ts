import type {
  IpCidrsValue,
  ModelsValue,
  PolicyViolation,
  ProvidersValue,
  RuleKind,
  RuleMode,
  RuleType,
  Scope,
  TagsValue,
} from '../generated/types.ts';

/** Scopes of rules, outermost first. */
export const SCOPES: readonly Scope[] = ['organization', 'group', 'member', 'key'];

export type RuleEffect = PolicyViolation['effect'];
export type { RuleKind };

/** A stored pricing value: maxima are plain decimals in USD per million tokens. */
export interface StoredPricingValue {
  readonly pricingType?: 'free' | 'paid';
  readonly maxInputPrice?: string;
  readonly maxOutputPrice?: string;
}

/** The value of a stored rule, by its kind. */
interface RuleValues {
  readonly models: ModelsValue;
  readonly providers: ProvidersValue;
  readonly pricing: StoredPricingValue;
  readonly ip_cidrs: IpCidrsValue;
  readonly tags: TagsValue;
}

interface RuleOf<Kind extends RuleKind> {
  readonly id: string;
  readonly ruleType: `${RuleEffect}_${Kind}`;
  readonly ruleValue: Readonly<RuleValues[Kind]>;
  readonly mode: RuleMode;
}

/** The parts of an active rule that decisions need. */
export type PolicyRule = { [Kind in RuleKind]: RuleOf<Kind> }[RuleKind];

type Judged<Rule> = Rule extends PolicyRule ? Pick<Rule, 'ruleType' | 'ruleValue'> : never;

/** Type and value of a rule as it is judged: entries once each, ranges and price caps in canonical form. */
export type CanonicalRule = Judged<PolicyRule>;

interface KindFacts {
  /** The field of the value that lists its entries; null where the value is conditions. */
  readonly list: string | null;
  /** Whether moderations are judged by it (policy/reference.md, "Moderations"). */
  readonly judgesModeration: boolean;
}

/** Facts that hold for both effects of a kind. */
const KINDS = {
  models: { list: 'models', judgesModeration: false },
  providers: { list: 'providers', judgesModeration: true },
  pricing: { list: null, judgesModeration: false },
  ip_cidrs: { list: 'ipCidrs', judgesModeration: true },
  tags: { list: 'tags', judgesModeration: true },
} as const satisfies Readonly<Record<RuleKind, KindFacts>>;

type ListKind = { [Kind in RuleKind]: (typeof KINDS)[Kind]['list'] extends null ? never : Kind }[RuleKind];

/** The kinds whose value is conditions, each with the fields that state one. */
export type ConditionFields = { readonly [Kind in Exclude<RuleKind, ListKind>]: keyof RuleValues[Kind] };

/** Returns the entry for a rule's value, by the rule's kind. A kind that a place forgets does not compile. */
export function byKind<T>(
  rule: CanonicalRule,
  cases: { readonly [Kind in RuleKind]: (value: Readonly<RuleValues[Kind]>) => T },
): T {
  switch (rule.ruleType) {
    case 'allow_models':
    case 'deny_models':
      return cases.models(rule.ruleValue);
    case 'allow_providers':
    case 'deny_providers':
      return cases.providers(rule.ruleValue);
    case 'allow_pricing':
    case 'deny_pricing':
      return cases.pricing(rule.ruleValue);
    case 'allow_ip_cidrs':
    case 'deny_ip_cidrs':
      return cases.ip_cidrs(rule.ruleValue);
    case 'allow_tags':
    case 'deny_tags':
      return cases.tags(rule.ruleValue);
    default:
      rule satisfies never;
      throw new TypeError('The rule type is unknown.');
  }
}

/** The entries of a list, or none where the value is conditions. */
export const entriesOf = (rule: CanonicalRule): readonly string[] =>
  byKind(rule, {
    models: ({ models }) => models,
    providers: ({ providers }) => providers,
    pricing: () => [],
    ip_cidrs: ({ ipCidrs }) => ipCidrs,
    tags: ({ tags }) => tags,
  });

const isListKind = (kind: RuleKind): kind is ListKind => KINDS[kind].list !== null;

/** Returns the entry for a rule's list, by the rule's kind; `otherwise` where the value is conditions. */
export function byList<T>(
  rule: CanonicalRule,
  cases: Readonly<Record<ListKind, (entries: readonly string[]) => T>>,
  otherwise: T,
): T {
  const kind = kindOf(rule.ruleType);
  return isListKind(kind) ? cases[kind](entriesOf(rule)) : otherwise;
}

/** Effect and kind of a rule type, and its place among the steps that find the reason of a denial. */
interface RuleTypeFacts<Effect extends RuleEffect, Kind extends RuleKind> {
  readonly effect: Effect;
  readonly kind: Kind;
  readonly step: number;
}

type RuleTypes = {
  readonly [Type in RuleType]: Type extends `${infer Effect extends RuleEffect}_${infer Kind extends RuleKind}`
    ? RuleTypeFacts<Effect, Kind>
    : never;
};

/** The rule types (policy/reference.md, "IAM rules"). */
const TYPES: RuleTypes = {
  allow_models: { effect: 'allow', kind: 'models', step: 4 },
  deny_models: { effect: 'deny', kind: 'models', step: 3 },
  allow_providers: { effect: 'allow', kind: 'providers', step: 6 },
  deny_providers: { effect: 'deny', kind: 'providers', step: 5 },
  allow_pricing: { effect: 'allow', kind: 'pricing', step: 8 },
  deny_pricing: { effect: 'deny', kind: 'pricing', step: 7 },
  allow_ip_cidrs: { effect: 'allow', kind: 'ip_cidrs', step: 2 },
  deny_ip_cidrs: { effect: 'deny', kind: 'ip_cidrs', step: 1 },
  allow_tags: { effect: 'allow', kind: 'tags', step: 10 },
  deny_tags: { effect: 'deny', kind: 'tags', step: 9 },
};

const typeOf = ({ effect, kind }: RuleTypeFacts<RuleEffect, RuleKind>): RuleType => `${effect}_${kind}`;

export const RULE_TYPES: readonly RuleType[] = Object.values(TYPES).map(typeOf);

/** The rule types in the order in which a denial's reason is looked for (policy/reference.md, "The reported reason"). */
export const DENIAL_STEPS = Object.values(TYPES).toSorted((a, b) => a.step - b.step);

export const effectOf = (type: RuleType): RuleEffect => TYPES[type].effect;

export const kindOf = (type: RuleType): RuleKind => TYPES[type].kind;

/** Facts about a rule type's kind. */
export const factsOf = (type: RuleType): KindFacts => KINDS[kindOf(type)];
