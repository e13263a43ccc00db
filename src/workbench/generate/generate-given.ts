import type { Catalog } from '../../catalog/catalog.ts';
import { canonicalModelId } from '../../config/upstreams.ts';
import { entriesOf, factsOf, type PolicyRule } from '../../domain/iam-rule.ts';
import { type Mapping, mappingNames } from '../../domain/model.ts';
import type {
  FixtureGiven,
  FixtureMapping,
  FixtureModel,
  FixtureRule,
  FixtureSubject,
  Scope,
} from '../../generated/types.ts';
import { CATALOG_ID, writeMapping } from '../fixtures/fixture-given.ts';
import { listOf } from '../fixtures/fixture-source.ts';
import {
  groupsOf,
  type World,
  type WorldGroup,
  type WorldKey,
  type WorldMember,
  type WorldOrganization,
} from '../world/world.ts';

/** A subject with rules, and those above it whose rules meet the same calls. */
export interface RuleHolder {
  readonly scope: Scope;
  /** For people. */
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  readonly organization: WorldOrganization;
  /** Those of the member and the key, or the group itself. */
  readonly groups: readonly WorldGroup[];
  readonly member?: WorldMember;
  readonly key?: WorldKey;
}

/** Id of the key, the member, the group or the organization. */
export const holderId = ({ scope, key, member, groups, organization }: RuleHolder): string =>
  key?.id ?? member?.id ?? (scope === 'group' ? groups[0]?.id : undefined) ?? organization.id;

/** A key, with everyone whose rules its calls meet; undefined if the world does not have its organization. */
export function keyHolder(world: World, key: WorldKey): RuleHolder | undefined {
  const organization = world.organizations.get(key.organizationId);
  if (organization === undefined) return undefined;
  const member = world.members.get(key.memberId);
  return {
    scope: 'key',
    name: key.description === '' ? key.id : key.description,
    rules: key.rules,
    organization,
    groups: groupsOf(world, key.id, key.memberId),
    key,
    ...(member === undefined ? {} : { member }),
  };
}

/** Everyone in the world who has rules; or a key and those above it. */
export function ruleHolders(world: World, only?: WorldKey): RuleHolder[] {
  const { organizations, members, keys } = world;
  const owner = only === undefined ? undefined : members.get(only.memberId);
  return [...organizations.values()].flatMap((organization) => {
    const { id: organizationId } = organization;
    const ofKeys = [...keys.values()].filter((key) => key.organizationId === organizationId && (only ?? key) === key);
    const ofMembers = [...members.values()].filter(
      (member) => member.organizationId === organizationId && (owner ?? member) === member,
    );
    const ofGroups =
      only === undefined
        ? [...world.groups.values()].filter((group) => group.organizationId === organizationId)
        : groupsOf(world, only.id, only.memberId);
    const holders: RuleHolder[] = [
      { scope: 'organization', name: organization.name, rules: organization.rules, organization, groups: [] },
      ...ofGroups.map(
        (group): RuleHolder => ({
          scope: 'group',
          name: group.name,
          rules: group.rules,
          organization,
          groups: [group],
        }),
      ),
      ...ofMembers.map(
        (member): RuleHolder => ({
          scope: 'member',
          name: member.email,
          rules: member.rules,
          organization,
          groups: groupsOf(world, member.id),
          member,
        }),
      ),
      ...ofKeys.flatMap((key) => keyHolder(world, key) ?? []),
    ];
    const concerned = only === undefined || only.organizationId === organizationId;
    return concerned ? holders.filter(({ rules }) => rules.length > 0) : [];
  });
}

/** The rules that a call meets of which this one's are the innermost. */
export const rulesAround = ({ organization, groups, member, key }: RuleHolder): PolicyRule[] => [
  ...organization.rules,
  ...groups.flatMap(({ rules }) => rules),
  ...(member?.rules ?? []),
  ...(key?.rules ?? []),
];

/** Builds the part of a fixture for a holder and those above it that have some of these rules. Keys go by their ids. */
export function subjectsGiven(
  { organization, groups, member, key }: RuleHolder,
  rules: readonly PolicyRule[],
): Pick<FixtureGiven, 'organization' | 'groups' | 'members' | 'keys'> {
  const of = (all: readonly PolicyRule[]): FixtureSubject => {
    const kept = all.filter((rule) => rules.includes(rule));
    return kept.length === 0 ? {} : { rules: Object.fromEntries(kept.map((rule) => [rule.id, fixtureRule(rule)])) };
  };
  const keyName = key?.id ?? 'key';
  const binding = groups.filter((group) => group.rules.some((rule) => rules.includes(rule)));
  const needsKey = member !== undefined || binding.length > 0;
  return {
    ...(organization.rules.some((rule) => rules.includes(rule)) ? { organization: of(organization.rules) } : {}),
    ...(binding.length === 0
      ? {}
      : { groups: Object.fromEntries(binding.map((group) => [group.name, { keys: [keyName], ...of(group.rules) }])) }),
    ...(member === undefined ? {} : { members: { [member.email]: of(member.rules) } }),
    ...(needsKey
      ? { keys: { [keyName]: { ...(member === undefined ? {} : { owner: member.email }), ...of(key?.rules ?? []) } } }
      : {}),
  };
}

function fixtureRule(rule: PolicyRule): FixtureRule {
  const written = factsOf(rule.ruleType).list === null ? rule.ruleValue : entriesOf(rule);
  return { [rule.ruleType]: written, ...(rule.mode === 'report' ? { mode: rule.mode } : {}) };
}

/** The models that boundary cases are about, as a fixture gives them, and the names by which they are asked for. */
export interface Slice {
  readonly models: Readonly<Record<string, FixtureModel>>;
  readonly custom: Readonly<Record<string, FixtureMapping>>;
  /** Bare and pinned; every name means a model of the slice. */
  readonly names: readonly string[];
}

/** Prices of models that have no particular price. */
export const PRICED: FixtureMapping = { inputPricePerMillion: '1', outputPricePerMillion: '4' };

const CUSTOM_PROVIDER = /^[a-z]+(-[a-z]+)*$/;

export const EMPTY_SLICE: Slice = { models: {}, custom: {}, names: [] };

/** A model under its canonical id at some providers, asked for by each of its names. */
export function modelSlice(
  id: string,
  providers: readonly string[],
  aliases: readonly string[] = [],
  mapping: FixtureMapping = PRICED,
): Slice {
  // A canonical id holds no `/`: a provider's own id that does goes by the one with `--`.
  const modelId = canonicalModelId(id);
  const served = providers.filter((provider) => CATALOG_ID.test(provider));
  if (!CATALOG_ID.test(modelId) || served.length === 0) return EMPTY_SLICE;
  const { externalId = id } = mapping;
  const written = { ...(externalId === modelId ? {} : { externalId }), ...mapping };
  return {
    models: {
      [modelId]: {
        ...(aliases.length === 0 ? {} : { aliases: [...aliases] }),
        providers: Object.fromEntries(served.map((provider) => [provider, written])),
      },
    },
    custom: {},
    names: [
      ...new Set(
        served.flatMap((provider) => namesOf([modelId, { aliases: [...aliases], providers: { [provider]: written } }])),
      ),
    ],
  };
}

/** A model of a custom provider, or nothing where no custom provider can have this name. */
export function customSlice(provider: string, model: string): Slice {
  if (!CUSTOM_PROVIDER.test(provider) || provider === 'custom') return EMPTY_SLICE;
  const id = `${provider}/${model}`;
  return { models: {}, custom: { [id]: PRICED }, names: [id] };
}

/** Models of an organization's own, as they are there. */
export const ownSlice = (mappings: readonly Mapping[]): Slice => ({
  models: {},
  custom: Object.fromEntries(mappings.map((mapping) => [mapping.id, writeMapping(mapping)])),
  names: mappings.map(({ id }) => id),
});

/** Slice of this installation's catalogue that a name means, unchanged; empty for an unknown name. */
export function knownSlice(catalog: Catalog, name: string): Slice {
  const modelIds = new Set((catalog.resolve(name) ?? []).map(({ modelId }) => modelId));
  const models = catalog.models().filter(({ id }) => modelIds.has(id));
  const slices = models.flatMap(({ id, aliases, mappings }) =>
    mappings
      .filter((mapping) => catalog.resolve(mapping.id)?.length === 1)
      .map((mapping) => {
        const { externalId } = mapping;
        const named = externalId === id ? {} : { externalId };
        return modelSlice(id, [mapping.providerId], aliases, { ...named, ...writeMapping(mapping) });
      }),
  );
  return mergeSlices(slices);
}

/** All of them together; of what several say of one model at one provider the first holds. */
export function mergeSlices(slices: readonly Slice[]): Slice {
  const models = new Map<string, FixtureModel>();
  for (const [id, model] of slices.flatMap((slice) => Object.entries(slice.models))) {
    const before = models.get(id);
    const aliases = [...new Set([...listOf(before?.aliases), ...listOf(model.aliases)])];
    models.set(id, {
      ...(aliases.length === 0 ? {} : { aliases }),
      providers: { ...model.providers, ...before?.providers },
    });
  }
  const custom = new Map(slices.flatMap((slice) => Object.entries(slice.custom)).reverse());
  const served = new Set([...[...models].flatMap(namesOf), ...custom.keys()]);
  return {
    models: Object.fromEntries(models),
    custom: Object.fromEntries(custom),
    // A mapping in two slices may have gone by another id of its provider's in one of them.
    names: [...new Set(slices.flatMap(({ names }) => names))].filter((name) => served.has(name)),
  };
}

const namesOf = ([modelId, { aliases, providers }]: readonly [string, FixtureModel]): readonly string[] =>
  Object.entries(providers).flatMap(([providerId, { externalId = modelId }]) =>
    mappingNames({ providerId, modelId, externalId }, listOf(aliases)),
  );
