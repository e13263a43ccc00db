import type {
  PriceCap,
  PricingValue,
  RuleCreate,
  RuleMode,
  RuleStatus,
  RuleType,
  RuleValue,
} from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';
import { canonicalCidr, InvalidRangeError } from './address.ts';
import { checkShape, type Explanation } from './check-shape.ts';
import { invalidField } from './errors.ts';
import type { CanonicalRule, RuleKind, StoredPricingValue } from './iam-rule.ts';
import { formatUsdPerMillion, parseUsdPerMillion } from './limits.ts';

const validateRuleCreate = validator('RuleCreate');

/** A rule that may be stored. */
export interface RuleContent {
  readonly ruleType: RuleType;
  /** As written, but for price caps, which are decimal strings. */
  readonly ruleValue: RuleValue;
  readonly canonical: CanonicalRule;
  readonly status: RuleStatus;
  readonly mode: RuleMode;
  readonly description: string | null;
}

const ID = 'letters, digits and . _ : @ / -, at most 512 of them';

/** Requirement for the value of each kind. */
const OF_KIND: Readonly<Record<RuleKind, Explanation>> = {
  models: {
    at: /^\/ruleValue\/models\/\d+$/,
    must: `must be a model id (${ID}) or a prefix of one that ends in its only *`,
  },
  providers: { at: /^\/ruleValue\/providers\/\d+$/, must: `must be a provider id (${ID})` },
  pricing: {
    at: /^\/ruleValue\/max(Input|Output)Price$/,
    must: 'must be a decimal string or a number, in USD per million tokens',
  },
  ip_cidrs: { at: /^\/ruleValue\/ipCidrs\/\d+$/, must: 'must be a CIDR range such as 192.0.2.0/24' },
  tags: {
    at: /^\/ruleValue\/tags\/\d+$/,
    must: 'must be a tag such as region:eu (small letters, digits and _ . -), or a prefix of one that ends in its only *',
  },
};

const EXPLANATIONS = [
  ...Object.values(OF_KIND),
  { at: /^\/description$/, must: 'must be a text of at most 256 characters, or null' },
];

/**
 * A rule from what a caller wrote (policy/reference.md, "Writing a rule").
 * @throws ApiError 400 that names the first faulty entry, by its place and its text.
 */
export function readRule(body: unknown): RuleContent {
  const rule = checkShape(validateRuleCreate, body, EXPLANATIONS);
  const { ruleType, ruleValue, status = 'active', mode = 'enforce', description = null } = rule;
  return { ruleType, ruleValue: decimalCaps(ruleValue), canonical: canonicalRule(rule), status, mode, description };
}

/** A new rule, and whether it may permit what was not permitted. @throws ApiError 400 as `readRule` */
export function readRuleRequest(body: unknown): { readonly content: RuleContent; readonly failOnNewAccess: boolean } {
  const { failOnNewAccess = false, ...rule } = checkShape(validator('RuleCreateRequest'), body, EXPLANATIONS);
  return { content: readRule(rule), failOnNewAccess };
}

/** A rule as the API takes it. */
export const asCreate = ({
  ruleType,
  ruleValue,
  status,
  mode,
  description,
}: RuleContent): Omit<RuleContent, 'canonical'> => ({
  ruleType,
  ruleValue,
  status,
  mode,
  description,
});

/** The canonical form of a rule of the right shape; that of a canonical rule is itself. @throws ApiError 400 */
export function canonicalRule({ ruleType, ruleValue }: Pick<RuleCreate, 'ruleType' | 'ruleValue'>): CanonicalRule {
  switch (ruleType) {
    case 'allow_models':
    case 'deny_models':
      if ('models' in ruleValue) return { ruleType, ruleValue: { models: unique(ruleValue.models) } };
      break;
    case 'allow_providers':
    case 'deny_providers':
      if ('providers' in ruleValue) return { ruleType, ruleValue: { providers: unique(ruleValue.providers) } };
      break;
    case 'allow_pricing':
    case 'deny_pricing':
      if (isPricing(ruleValue)) return { ruleType, ruleValue: canonicalPricing(ruleValue) };
      break;
    case 'allow_ip_cidrs':
    case 'deny_ip_cidrs':
      if ('ipCidrs' in ruleValue) {
        return { ruleType, ruleValue: { ipCidrs: unique(ruleValue.ipCidrs.map(canonicalEntry)) } };
      }
      break;
    case 'allow_tags':
    case 'deny_tags':
      if ('tags' in ruleValue) return { ruleType, ruleValue: { tags: unique(ruleValue.tags) } };
      break;
    default:
      ruleType satisfies never;
  }
  throw new TypeError(`A value of another type stands in a rule of type ${ruleType}.`);
}

/** A rule as it is stored; its values are what the database holds. */
interface StoredRule {
  readonly id: string;
  readonly ruleType: string;
  readonly ruleValue: unknown;
}

/** A stored rule in canonical form. Throws for one that we would not have stored, so that nothing judges by it. */
export function storedRule({ id, ruleType, ruleValue }: StoredRule): CanonicalRule {
  const rule: unknown = { ruleType, ruleValue };
  if (!validateRuleCreate(rule)) throw new Error(`The stored rule ${id} is not valid.`);
  return canonicalRule(rule);
}

const unique = (entries: readonly string[]): string[] => [...new Set(entries)];

const isPricing = (value: RuleValue): value is PricingValue =>
  'pricingType' in value || 'maxInputPrice' in value || 'maxOutputPrice' in value;

function canonicalEntry(entry: string, index: number): string {
  try {
    return canonicalCidr(entry);
  } catch (error) {
    if (!(error instanceof InvalidRangeError)) throw error;
    const pointer = `/ruleValue/ipCidrs/${index}`;
    throw invalidField(pointer, `is not a CIDR range: ${error.message}`);
  }
}

function withCaps(value: PricingValue, convert: (cap: PriceCap, name: string) => string): StoredPricingValue {
  const { pricingType, maxInputPrice, maxOutputPrice } = value;
  return {
    ...(pricingType === undefined ? {} : { pricingType }),
    ...(maxInputPrice === undefined ? {} : { maxInputPrice: convert(maxInputPrice, 'maxInputPrice') }),
    ...(maxOutputPrice === undefined ? {} : { maxOutputPrice: convert(maxOutputPrice, 'maxOutputPrice') }),
  };
}

const canonicalPricing = (value: PricingValue): StoredPricingValue =>
  withCaps(value, (cap, name) => formatUsdPerMillion(parseUsdPerMillion(cap, `/ruleValue/${name}`)));

const decimalCaps = (value: RuleValue): RuleValue => (isPricing(value) ? withCaps(value, String) : value);
