/** Random policy cases out of a small universe, so that entries, names, prices and addresses often collide. */
import fc from 'fast-check';
import { effectOf, RULE_TYPES, type RuleEffect } from '../../src/domain/iam-rule.ts';
import { mappingNames } from '../../src/domain/model.ts';
import type { PolicyCandidate, RuleType } from '../../src/generated/types.ts';
import type { CandidateAttribute } from '../../src/policy/input-document.ts';
import type { OracleRequest, OracleSubject, RuleContent } from './oracle.ts';
import { picoPerToken } from './oracle.ts';
import { formatAddress, parseAddress } from './oracle-addresses.ts';

const MODELS = [
  { id: 'gpt-5', externalId: 'gpt-5-2026-01-01', aliases: ['gpt-5-latest', 'gpt'] },
  { id: 'gpt-5-mini', externalId: 'gpt-5-mini', aliases: [] },
  { id: 'claude-opus', externalId: 'house/claude', aliases: ['claude-opus@2026', 'opus'] },
  { id: '__proto__', externalId: 'toString', aliases: ['constructor'] },
  { id: '42', externalId: 'gpt-5', aliases: ['llama:3.1_8b'] },
];
const PROVIDERS = ['openai', 'azure', '__proto__'];
const CUSTOM_PROVIDERS = ['acme', 'constructor'];

const CATALOGUE = PROVIDERS.flatMap((provider) =>
  MODELS.map(({ id, externalId, aliases }) => ({
    id: `${provider}/${id}`,
    names: [...mappingNames({ providerId: provider, modelId: id, externalId }, aliases)],
    provider_names: [provider],
  })),
);
const CUSTOM = CUSTOM_PROVIDERS.flatMap((provider) =>
  ['gpt-5', '__proto__', 'house/own'].map((model) => ({
    id: `${provider}/${model}`,
    names: [`${provider}/${model}`],
    provider_names: ['custom', `custom:${provider}`],
  })),
);
const NAMES = [...new Set([...CATALOGUE, ...CUSTOM].flatMap(({ names }) => names))];
const UNKNOWN_NAMES = ['gpt-6', 'GPT-5', 'openai', 'acme', 'toString', 'hasOwnProperty', 'azure/gpt-6', 'own'];

/** Price caps, USD per million tokens; the candidates' prices lie on, just below and just above them. */
const CAPS = ['0', '0.000001', '0.15', '0.150000', '2.5', '2.500001', '8999999.999999', '9000000'];
const PRICES = [...new Set(CAPS.flatMap((cap) => [-1, 0, 1].map((step) => Number(picoPerToken(cap)) + step)))];

const price = fc.constantFrom(0, 0, ...PRICES.filter((pico) => pico >= 0));

const TAGS = ['region:eu', 'region:us', 'region:eu-2', 'no_training', 'retention:30d', 'constructor'];
const tags = fc.subarray(TAGS, { minLength: 1, maxLength: 4 }).map((all) => all.sort());

/** What a candidate may lack. */
const ATTRIBUTES = { input_price: price, output_price: price, tags } satisfies Readonly<
  Record<CandidateAttribute, fc.Arbitrary<unknown>>
>;

/** A mapping that could serve the call. It is free only when it has no price above zero. */
export const candidate: fc.Arbitrary<PolicyCandidate> = fc
  .record({
    mapping: fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...CATALOGUE) }, fc.constantFrom(...CUSTOM)),
    attributes: fc.record(ATTRIBUTES, { requiredKeys: [] }),
    flag: fc.boolean(),
  })
  .map(({ mapping, attributes, flag }) => {
    const { input_price = 0, output_price = 0 } = attributes;
    return { ...mapping, ...attributes, free: flag && input_price === 0 && output_price === 0 };
  });

export const candidates = fc.uniqueArray(candidate, { minLength: 1, maxLength: 6, selector: ({ id }) => id });

const exactName = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 1, arbitrary: fc.constantFrom(...UNKNOWN_NAMES) },
);
const prefixName = fc.tuple(exactName, fc.nat(9)).map(([name, length]) => `${name.slice(0, length)}*`);
export const modelEntry = fc.oneof({ weight: 3, arbitrary: exactName }, prefixName);

const exactTag = fc.constantFrom(...TAGS, ...TAGS, 'region', 'region:global', 'valueof');
const prefixTag = fc.tuple(exactTag, fc.nat(9)).map(([tag, length]) => `${tag.slice(0, length)}*`);
const tagEntry = fc.oneof({ weight: 3, arbitrary: exactTag }, prefixTag);

const customEntries = ['custom', ...CUSTOM_PROVIDERS.map((name) => `custom:${name}`), 'custom:nobody'];
export const providerEntry = fc.constantFrom(
  ...PROVIDERS,
  ...PROVIDERS,
  ...customEntries,
  'acme',
  'constructor',
  'nobody',
);

const IPV4 = ['10.1.2.3', '10.1.2.255', '192.0.2.128'];
const IPV4_MAPPED = ['::ffff:10.1.2.3', '::FFFF:c000:280'];
const IPV6 = ['2001:DB8::1', '2001:db8:0:0:1:0:0:1', '1:0:2:3:4:5:6:0', '::1', '::', 'fe80::a:0:0:0', 'ffff::'];
const prefix4 = fc.oneof(fc.constantFrom(0, 8, 24, 32), fc.nat(32));
const prefix6 = fc.oneof(fc.constantFrom(0, 32, 64, 96, 128), fc.nat(128));
const prefixMapped = fc.oneof(fc.constantFrom(0, 95, 96, 104, 128), fc.integer({ min: 80, max: 128 }));

/** A range as written: with host bits, in any case, IPv4-mapped. */
export const cidr = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...IPV4), prefix4).map(([base, bits]) => `${base}/${bits}`) },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...IPV6), prefix6).map(([base, bits]) => `${base}/${bits}`) },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom(...IPV4_MAPPED), prefixMapped).map(([base, bits]) => `${base}/${bits}`),
  },
);

/** First and last address of a range and their outer neighbours, in canonical form. */
function edgesOf(range: string): string[] {
  const [network = '', prefix = ''] = range.split('/');
  const { bits, value } = parseAddress(network);
  const size = 1n << BigInt(bits - Number(prefix));
  const first = (value / size) * size;
  return [first, first + size - 1n, first - 1n, first + size].map((edge) => {
    const inside = BigInt.asUintN(bits, edge);
    const isMapped = bits === 128 && inside >> 32n === 0xffffn;
    return formatAddress(isMapped ? { bits: 32, value: inside & 0xffffffffn } : { bits, value: inside });
  });
}

const strayAddress = fc.oneof(
  fc.constantFrom(...IPV4, '2001:db8::1', '2001:db8:0:0:1::1', '::1', '::'),
  fc.tuple(cidr, fc.nat(3)).map(([range, edge]) => edgesOf(range)[edge] ?? '::'),
);

const listOf = <T>(entry: fc.Arbitrary<T>) => fc.array(entry, { minLength: 1, maxLength: 4 });
const models = fc.record({ models: listOf(modelEntry) });
const providers = fc.record({ providers: listOf(providerEntry) });
const ipCidrs = fc.record({ ipCidrs: listOf(cidr) });
const tagList = fc.record({ tags: listOf(tagEntry) });
const cap = fc.constantFrom(...CAPS);
const pricing = fc
  .record(
    { pricingType: fc.constantFrom('free' as const, 'paid' as const), maxInputPrice: cap, maxOutputPrice: cap },
    { requiredKeys: [] },
  )
  .filter((value) => Object.keys(value).length > 0);

/** Type and value of a rule of each type, and how often it comes. */
const CONTENT: Readonly<Record<RuleType, fc.WeightedArbitrary<RuleContent>>> = {
  allow_models: { weight: 3, arbitrary: fc.record({ ruleType: fc.constant('allow_models'), ruleValue: models }) },
  deny_models: { weight: 3, arbitrary: fc.record({ ruleType: fc.constant('deny_models'), ruleValue: models }) },
  allow_providers: {
    weight: 3,
    arbitrary: fc.record({ ruleType: fc.constant('allow_providers'), ruleValue: providers }),
  },
  deny_providers: {
    weight: 3,
    arbitrary: fc.record({ ruleType: fc.constant('deny_providers'), ruleValue: providers }),
  },
  allow_pricing: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('allow_pricing'), ruleValue: pricing }) },
  deny_pricing: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('deny_pricing'), ruleValue: pricing }) },
  allow_ip_cidrs: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('allow_ip_cidrs'), ruleValue: ipCidrs }) },
  deny_ip_cidrs: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('deny_ip_cidrs'), ruleValue: ipCidrs }) },
  allow_tags: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('allow_tags'), ruleValue: tagList }) },
  deny_tags: { weight: 2, arbitrary: fc.record({ ruleType: fc.constant('deny_tags'), ruleValue: tagList }) },
};

const contentOf = (effect: RuleEffect): fc.Arbitrary<RuleContent> =>
  fc.oneof(...RULE_TYPES.filter((type) => effectOf(type) === effect).map((type) => CONTENT[type]));
export const allowContent = contentOf('allow');
export const denyContent = contentOf('deny');

const mode = fc.constantFrom('enforce' as const, 'enforce' as const, 'report' as const);
const draft = fc.tuple(fc.oneof(allowContent, denyContent), mode).map(([content, mode]) => ({ ...content, mode }));
const drafts = fc.oneof(fc.array(draft, { maxLength: 3 }), fc.array(draft, { maxLength: 6 }));

const SUBJECTS = [
  { scope: 'organization', id: 'org_1' },
  { scope: 'group', id: 'grp_2' },
  { scope: 'group', id: 'grp_1' },
  { scope: 'member', id: 'mem_1' },
  { scope: 'key', id: 'key_1' },
] as const;

/** One to five subjects, outermost first. Rule ids are unique in the case and do not sort as the rules are listed. */
export const subjects: fc.Arbitrary<OracleSubject[]> = fc
  .tuple(fc.subarray([...SUBJECTS], { minLength: 1 }), fc.tuple(drafts, drafts, drafts, drafts, drafts))
  .map(([owners, lists]) =>
    owners.map((owner, place) => ({
      ...owner,
      rules: (lists[place] ?? []).map((rule, n) => ({ ...rule, id: `rule_${((place * 6 + n) * 7) % 31}` })),
    })),
  );

/** Addresses at the edges of the ranges that the rules name. */
function edgesNamedBy(scopes: readonly OracleSubject[]): string[] {
  const rules = scopes.flatMap((scope) => scope.rules);
  return rules.flatMap(({ ruleValue }) => ('ipCidrs' in ruleValue ? ruleValue.ipCidrs.flatMap(edgesOf) : []));
}

export const policyCase: fc.Arbitrary<OracleRequest> = fc
  .record({
    action: fc.constantFrom('chat' as const, 'chat' as const, 'image' as const, 'moderation' as const),
    stray: fc.option(strayAddress, { freq: 4 }),
    edge: fc.nat(99),
    subjects,
    candidates,
  })
  .map(({ action, stray, edge, subjects, candidates }) => {
    const edges = edgesNamedBy(subjects);
    const clientIp = edge % 3 === 0 ? stray : (edges[edge % edges.length] ?? stray);
    return { action, clientIp, subjects, candidates };
  });
