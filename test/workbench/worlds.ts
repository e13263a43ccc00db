/** Small random worlds: one organization, two members, three keys, over a catalogue of a few mappings that collide. */
import fc from 'fast-check';
import { type Catalog, catalogOf } from '../../src/catalog/catalog.ts';
import { actionOf } from '../../src/core/operations.ts';
import { canonicalAddress } from '../../src/domain/address.ts';
import { type Mapping, mappingNames } from '../../src/domain/model.ts';
import type { OrganizationProviders, SealedProviderKey, TagSet } from '../../src/domain/provider.ts';
import { canonicalRule } from '../../src/domain/rule-content.ts';
import { ManualClock } from '../../src/domain/time.ts';
import type { PolicyDecision, PolicyInput } from '../../src/generated/types.ts';
import { compileSubjectRules, dataDocument } from '../../src/policy/data-document.ts';
import { inputDocument } from '../../src/policy/input-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import type { World, WorldRule, WorldSubject } from '../../src/workbench/world/world.ts';
import { allowContent, denyContent } from '../policy/arbitraries.ts';
import { formatAddress, parseAddress } from '../policy/oracle-addresses.ts';

const PRICES: Mapping['prices'][] = [
  {},
  { prompt: 0n, completion: 0n },
  { prompt: 150_000n, completion: 2_500_000n },
  { prompt: 2_500_001n, completion: 2_500_001n },
];

const TAGS = [[], ['region:eu'], ['region:us', 'retention:30d'], ['no_training', 'region:eu-2']];

function mapping(providerId: string, modelId: string, aliases: string[], price: number, modality: string): Mapping {
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId: `house/${modelId}`,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId: `house/${modelId}` }, aliases),
    providerNames: [providerId],
    prices: PRICES[price] ?? {},
    freeFlag: false,
    inputModalities: ['text'],
    outputModalities: [modality],
    streaming: true,
    vision: false,
    tools: false,
    parallelToolCalls: false,
    reasoning: false,
    jsonOutput: false,
    structuredOutputs: false,
    stability: 'stable',
    tags: TAGS[price] ?? [],
  };
}

const MODELS = [
  { id: 'gpt-5', aliases: ['gpt-5-latest', 'gpt'], family: 'gpt', modality: 'text' },
  { id: 'gpt-5-mini', aliases: [], family: 'gpt', modality: 'text' },
  { id: 'claude-opus', aliases: ['opus'], family: 'claude', modality: 'text' },
  { id: '42', aliases: ['llama:3.1_8b'], family: 'llama', modality: 'image' },
  { id: 'watch', aliases: [], family: 'watch', modality: 'moderation' },
];

export const catalog: Catalog = catalogOf(
  [
    {
      date: '2026-01-01',
      providers: [
        { id: 'openai', name: 'OpenAI' },
        { id: 'azure', name: 'Azure' },
      ],
      models: MODELS.map(({ id, aliases, family, modality }, index) => ({
        id,
        name: id,
        aliases,
        description: '',
        family,
        created: 0,
        mappings: [
          mapping('openai', id, aliases, index % 4, modality),
          ...(index % 2 === 0 ? [mapping('azure', id, aliases, (index + 1) % 4, modality)] : []),
        ],
      })),
    },
  ],
  new ManualClock('2026-01-31T12:00:00.000Z'),
);

const mode = fc.constantFrom('enforce' as const, 'enforce' as const, 'enforce' as const, 'report' as const);
const rules = fc.array(fc.record({ content: fc.oneof(allowContent, denyContent), mode, id: fc.nat(99) }), {
  maxLength: 3,
});

type Draft = { content: Parameters<typeof canonicalRule>[0]; mode: WorldRule['mode']; id: number };

const worldRules = (prefix: string, drafts: readonly Draft[]): WorldRule[] => {
  const byId = new Map(drafts.map(({ id, content, mode }) => [`rule_${prefix}${id}`, { content, mode }]));
  return [...byId].map(([id, { content, mode }]) => ({ ...canonicalRule(content), id, mode, description: null }));
};

const byId = <T extends { id: string }>(items: readonly T[]): Map<string, T> =>
  new Map(items.map((item) => [item.id, item]));

const providerKey = (id: string, provider: string, projectId: string | null): SealedProviderKey => ({
  id,
  label: id,
  provider,
  projectId,
  baseUrl: null,
  secret: { keyId: 'test', ciphertext: '' },
});

export const customMapping = (providerId: string, modelId: string): Mapping => ({
  ...mapping(providerId, modelId, [], 2, 'text'),
  custom: true,
  names: [`${providerId}/${modelId}`],
  providerNames: ['custom', `custom:${providerId}`],
});

/** The organization's own tags, in every world; of models with tags of the catalogue they state no fact. */
const TAG_SETS: readonly TagSet[] = [
  { target: 'openai/*', tags: ['constructor', 'region:us'] },
  { target: 'gpt', tags: ['region:eu-2', 'team:research'] },
  { target: 'acme/own', tags: ['no_training'] },
];

/** What policy/reference.md, "Tags of your own" says, spelt out: the oracle for the tags of a mapping. */
function seenInWorlds(mapping: Mapping): Mapping {
  const said = TAG_SETS.flatMap(({ target, tags }) =>
    target === `${mapping.providerId}/*` || mapping.names.includes(target) ? tags : [],
  );
  const isFact = (tag: string): boolean => /^(no_training|region|retention|stability)(:|$)/.test(tag);
  const kept = mapping.tags.length === 0 ? said : said.filter((tag) => !isFact(tag));
  return { ...mapping, tags: [...new Set([...mapping.tags, ...kept])].sort() };
}

/** An organization's own providers: one hides that of its name in the catalogue, keys count for some projects. */
const providers: fc.Arbitrary<OrganizationProviders> = fc
  .record({
    names: fc.subarray(['acme', 'azure']),
    keyless: fc.boolean(),
    keys: fc.subarray([
      providerKey('pkey_1', 'openai', null),
      providerKey('pkey_2', 'azure', 'proj_1'),
      providerKey('pkey_3', 'custom:acme', 'proj_2'),
      providerKey('pkey_4', 'custom:azure', null),
    ]),
  })
  .map(({ names, keyless, keys }) => ({
    providers: names.map((name) => ({ id: `prov_${name}`, name, wire: 'openai', baseUrl: '', keyless, fields: [] })),
    mappings: names.flatMap((name) => [customMapping(name, 'gpt-5'), customMapping(name, 'own')]),
    keys,
    tagSets: TAG_SETS,
    aliases: [],
  }));

const groupHolders = fc.subarray(['mem_1', 'mem_2', 'key_1', 'key_3']).map((ids) => new Set(ids));

const served = fc.subarray(['openai', 'azure']).map((ids) => new Set(ids));

/**
 * Rule ids are unique in a world; the same ids come in others, with other contents. Two of the keys are of one project, the
 * third is of another.
 */
export const worlds: fc.Arbitrary<World> = fc
  .tuple(
    fc.tuple(rules, rules, rules, rules, rules, rules, rules, rules),
    fc.tuple(groupHolders, groupHolders),
    providers,
    served,
  )
  .map(([lists, ...credentials]) => worldWith(lists, ...credentials));

function worldWith(
  lists: readonly (readonly Draft[])[],
  [firstIn, secondIn]: readonly [ReadonlySet<string>, ReadonlySet<string>],
  own: OrganizationProviders,
  servedProviders: ReadonlySet<string>,
): World {
  const [organization = [], ...others] = lists.map((list, index) => worldRules(`${index}_`, list));
  const [first = [], second = [], one = [], two = [], three = [], team = [], guests = []] = others;
  const of = { organizationId: 'org_1' };
  return {
    catalog,
    servedProviders,
    organizations: byId([{ id: 'org_1', name: 'Example', ruleRevision: 1, rules: organization, providers: own }]),
    groups: byId([
      { ...of, id: 'grp_1', name: 'team', holderIds: firstIn, rules: team },
      { ...of, id: 'grp_2', name: 'guests', holderIds: secondIn, rules: guests },
    ]),
    members: byId([
      { ...of, id: 'mem_1', email: 'a@example.com', rules: first },
      { ...of, id: 'mem_2', email: 'b@example.com', rules: second },
    ]),
    keys: byId([
      { ...of, id: 'key_1', projectId: 'proj_1', memberId: 'mem_1', description: 'one', tags: [], rules: one },
      { ...of, id: 'key_2', projectId: 'proj_1', memberId: 'mem_1', description: 'two', tags: [], rules: two },
      { ...of, id: 'key_3', projectId: 'proj_2', memberId: 'mem_2', description: 'three', tags: [], rules: three },
    ]),
  };
}

/**
 * What policy/reference.md, "What is judged" says of a usable credential, spelt out: the oracle for who can call what. @param
 * projectId null: any
 */
export function canCall(world: World, projectId: string | null, { custom, providerId }: Mapping): boolean {
  const own = world.organizations.get('org_1')?.providers;
  if (own === undefined || own === null) throw new Error('a document knows no credentials');
  const named = own.providers.filter(({ name }) => name === providerId);
  const wanted = custom ? `custom:${providerId}` : providerId;
  const hasKey = own.keys.some(
    (key) => key.provider === wanted && [null, projectId ?? key.projectId].includes(key.projectId),
  );
  if (custom) return named.length > 0 && (named.some(({ keyless }) => keyless) || hasKey);
  return named.length === 0 && (world.servedProviders.has(providerId) || hasKey);
}

/** What one organization's calls can mean in these worlds: custom models of each, of the catalogue what none of them hides. */
export function mappingsIn(world: World): Mapping[] {
  const own = world.organizations.get('org_1')?.providers ?? null;
  const shared = MODELS.flatMap(({ id }) => catalog.resolve(id) ?? []);
  const isHidden = ({ providerId }: Mapping): boolean =>
    own?.providers.some(({ name }) => name === providerId) === true;
  const there = [...shared.filter((each) => !isHidden(each)), ...(own?.mappings ?? [])];
  return own === null ? there : there.map(seenInWorlds);
}

const pdp = createPdp();

/** One whole call, as the gateway makes it: all scopes, rules of both modes, one candidate or more. */
export function decide(
  subjects: readonly WorldSubject[],
  candidates: readonly Mapping[],
  address: string | null,
  action: PolicyInput['action'],
): PolicyDecision {
  const data = dataDocument(subjects.map(({ id, rules }) => ({ id, rules: compileSubjectRules(rules) })));
  const bare = subjects.map(({ scope, id }) => ({ scope, id }));
  return pdp.decide(inputDocument(action, address, bare, candidates), data);
}

/** Whether the call to this mapping alone is permitted. */
export const permits = (subjects: readonly WorldSubject[], candidate: Mapping, address: string | null): boolean =>
  decide(subjects, [candidate], address, actionOf(candidate)).permitted.length === 1;

/** First and last address of a range and their outer neighbours, in canonical form. */
export function edgesOf(range: string): (string | null)[] {
  const [network = '', prefix = ''] = range.split('/');
  const { bits, value } = parseAddress(network);
  const size = 1n << BigInt(bits - Number(prefix));
  return [value, value + size - 1n, value - 1n, value + size].map((edge) =>
    canonicalAddress(formatAddress({ bits, value: BigInt.asUintN(bits, edge) })),
  );
}

/** Addresses at, just inside and just outside the ends of every range of the worlds, and the unknown one. */
export function addressesOf(...some: readonly World[]): (string | null)[] {
  const rules = some.flatMap(({ organizations, groups, members, keys }) =>
    [organizations, groups, members, keys].flatMap((subjects) => [...subjects.values()].flatMap((each) => each.rules)),
  );
  const ranges = rules.flatMap(({ ruleValue }) => ('ipCidrs' in ruleValue ? ruleValue.ipCidrs : []));
  return [...new Set([null, '203.0.113.7', '2001:db8:ffff::7', ...ranges.flatMap(edgesOf)])];
}

/** Whether an address lies in a set of ranges as they are printed. */
export function lies(address: string | null, texts: readonly string[]): boolean {
  if (address === null) return texts.includes('unknown');
  const { bits, value } = parseAddress(address);
  return texts.some((text) => {
    if (text === 'unknown') return false;
    const [from = '', to] = text.split('-');
    const [network = '', prefix] = from.split('/');
    const first = parseAddress(network);
    const last = to === undefined ? first.value + (1n << BigInt(bits - Number(prefix))) - 1n : parseAddress(to).value;
    return first.bits === bits && first.value <= value && value <= last;
  });
}
