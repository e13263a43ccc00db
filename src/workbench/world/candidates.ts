import { isDeepStrictEqual } from 'node:util';
import { aliasesOf, credentialsOf, expanded, type Reach, type SeeMapping, seenBy } from '../../core/reach.ts';
import { meaningOf, type OwnModels } from '../../core/resolve.ts';
import type { Mapping } from '../../domain/model.ts';
import type { Alias, OrganizationProviders } from '../../domain/provider.ts';
import { getOrMake } from '../../lib/collections.ts';
import { activeMappings, type World } from './world.ts';

/** Organization and project to which calls belong. */
export interface Caller {
  readonly organizationId: string;
  /** Null: whichever project's, so that the provider keys of all of them count. */
  readonly projectId: string | null;
}

/** Whether a caller's call to a mapping has a credential, so that it can be a candidate. */
export type HasCredential = (caller: Caller, mapping: Mapping) => boolean;

/**
 * As calls are routed. A credential in one of several worlds is enough; a world that does not know an organization's own
 * providers says nothing of them, and where none knows them, everything can be called.
 */
export function credentialsIn(...worlds: readonly World[]): HasCredential {
  const known = new Map<string, (mapping: Mapping) => boolean>();
  const find = ({ organizationId, projectId }: Caller): ((mapping: Mapping) => boolean) => {
    const knowing = worlds.flatMap(({ organizations, servedProviders }) => {
      const own = organizations.get(organizationId)?.providers ?? null;
      return own === null ? [] : [credentialsOf(own, projectId, (id) => servedProviders.has(id))];
    });
    return knowing.length === 0 ? () => true : (mapping) => knowing.some(({ has }) => has(mapping));
  };
  return (caller, mapping) =>
    getOrMake(known, `${caller.organizationId} ${caller.projectId}`, () => find(caller))(mapping);
}

/**
 * Every mapping that the calls of an organization can mean, with a credential or without: those of the catalogue that are not
 * deactivated and that no custom provider hides, and those of its own models. By id.
 */
export function mappingsOf(world: World, organizationId: string): readonly Mapping[] {
  const own = world.organizations.get(organizationId)?.providers ?? null;
  const shared = activeMappings(world);
  if (own === null || !hasOwn(own)) return shared;
  const { isHidden } = credentialsOf(own, null, () => false);
  const seen = seenIn(world, organizationId);
  return [...shared.filter((mapping) => !isHidden(mapping)), ...own.mappings].map(seen).sort(inOrder);
}

/** Whether calls of an organization mean other mappings than everyone's, by names or in themselves. */
const hasOwn = ({ providers, tagSets, keys, aliases }: OrganizationProviders): boolean =>
  providers.length > 0 || tagSets.length > 0 || aliases.length > 0 || keys.some(({ baseUrl }) => baseUrl !== null);

const NOTHING_OWN = { tagSets: [], keys: [] };

/** An organization's view of mappings; unchanged if its tags are not known. */
const seenIn = ({ organizations }: World, organizationId: string): SeeMapping =>
  seenBy(organizations.get(organizationId)?.providers ?? NOTHING_OWN);

/** The names that a caller's organization and project have given to models. */
export function ownModels(world: World, { organizationId, projectId }: Caller): OwnModels & Pick<Reach, 'aliases'> {
  const own = world.organizations.get(organizationId)?.providers ?? null;
  const seen = seenIn(world, organizationId);
  return {
    custom: (own?.mappings ?? []).map(seen),
    seen,
    aliases: aliasesOf(own ?? { aliases: [] }, projectId),
    isCustomProvider: (provider) => own?.providers.some((each) => each.name === provider) ?? false,
  };
}

/** The meaning of a name, with a credential or without. */
export interface NameMeaning {
  /** Those of an alias stand in its order. */
  readonly mappings: readonly Mapping[];
  /** The alias that the name is; undefined: it is the name of a model. */
  readonly alias: Alias | undefined;
}

/** The meaning of a name for a caller; undefined: nothing has that name. */
export function meaningOfName(world: World, caller: Caller, name: string): NameMeaning | undefined {
  const own = ownModels(world, caller);
  const meaning = (model: string): readonly Mapping[] | undefined => meaningOf(model, world.catalog, own);
  const alias = own.aliases.get(name);
  const mappings = alias === undefined ? meaning(name) : expanded(alias, meaning).mappings;
  return mappings && { mappings, alias };
}

const inOrder = (a: Mapping, b: Mapping): number => (a.id < b.id ? -1 : 1);

/** Options for the mappings that an analysis names. */
export interface ReportOptions {
  /** True: also mappings that cannot be called for lack of a credential; false: they are counted only. */
  readonly withoutCredential: boolean;
}

/** Organizations that are judged by the same mappings, in every world that is looked at. */
export interface OrganizationSet {
  readonly organizationIds: ReadonlySet<string>;
  /** With a credential or without, by id. */
  readonly mappings: readonly Mapping[];
}

/**
 * Splits the organizations of some worlds so that the id of a mapping means one mapping: those without custom providers and tags
 * share the catalogue, each other one stands alone. Where worlds differ about a mapping, the last that knows it holds.
 */
export function organizationSets(worlds: readonly World[]): OrganizationSet[] {
  const providersIn = (world: World, id: string) => world.organizations.get(id)?.providers ?? null;
  const isAlone = (id: string): boolean =>
    worlds.some((world) => {
      const own = providersIn(world, id);
      return own !== null && hasOwn(own);
    });
  const ids = [...new Set(worlds.flatMap(({ organizations }) => [...organizations.keys()]))].sort();
  return [...Map.groupBy(ids, (id) => (isAlone(id) ? id : '')).values()].map((group) => {
    const [first = ''] = group;
    // Documents know custom providers of nobody: they say least.
    const said = worlds.toSorted(
      (a, b) => Number(providersIn(a, first) !== null) - Number(providersIn(b, first) !== null),
    );
    const byId = new Map(said.flatMap((world) => mappingsOf(world, first)).map((mapping) => [mapping.id, mapping]));
    return { organizationIds: new Set(group), mappings: [...byId.values()].sort(inOrder) };
  });
}

/** The mappings of two worlds, of one organization. */
export interface ComparedMappings {
  /** Those that are judged; one that differs stands twice, as each world has it. */
  readonly judged: readonly Mapping[];
  /** Each once, by id, with its places among the judged; undefined: that world does not have it. */
  readonly named: readonly {
    readonly mapping: Mapping;
    readonly was: number | undefined;
    readonly is: number | undefined;
  }[];
}

/** Every mapping that the calls of an organization can mean in one of two worlds. */
export function compareMappings(before: World, after: World, organizationId: string): ComparedMappings {
  const [wasById, isById] = [before, after].map(
    (world) => new Map(mappingsOf(world, organizationId).map((mapping) => [mapping.id, mapping])),
  );
  const judged: Mapping[] = [];
  const named = [...new Set([...(wasById?.keys() ?? []), ...(isById?.keys() ?? [])])].sort().flatMap((id) => {
    const [was, is] = [wasById?.get(id), isById?.get(id)];
    const mapping = is ?? was;
    if (mapping === undefined) return [];
    const place = (one: Mapping | undefined) => (one === undefined ? undefined : judged.push(one) - 1);
    const first = place(was);
    return [{ mapping, was: first, is: isDeepStrictEqual(was, is) ? first : place(is) }];
  });
  return { judged, named };
}
