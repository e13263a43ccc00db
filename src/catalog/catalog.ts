import { createHash } from 'node:crypto';
import { PROVIDER_IDS } from '../config/known-providers.ts';
import type { ServiceProvider } from '../config/service-provider.ts';
import type { UpstreamConfig } from '../config/upstream-config.ts';
import { type Mapping, mappingNames } from '../domain/model.ts';
import { type Clock, lastDate } from '../domain/time.ts';
import type { CatalogProvider } from '../generated/types.ts';
import { type CatalogData, listedProviders, readDataFile } from './catalog-file.ts';
import type { CatalogModel } from './catalog-model.ts';
import { upstreamData } from './upstream-models.ts';

export interface Catalog {
  /**
   * The active mappings that a request's `model` means: canonical id, alias, or `provider/` before either (what follows the
   * first `/` may hold more of them). Undefined for an unknown name; empty when all of its mappings are deactivated.
   */
  resolve(name: string): readonly Mapping[] | undefined;
  /** The day, `YYYY-MM-DD`, on which the last mapping that the name means was or will be deactivated; undefined if one never is. */
  retirement(name: string): string | undefined;
  /** Every mapping, deactivated ones included, by id. */
  mappings(): readonly Mapping[];
  /** Every model, by id. */
  models(): readonly CatalogModel[];
  providers(): readonly CatalogProvider[];
  /** SHA-256 in hex of all that the catalogue holds. */
  readonly digest: string;
  /** When the youngest of its data was taken, `YYYY-MM-DD`; empty without data files. */
  readonly date: string;
}

export interface CatalogOptions {
  readonly sandbox: boolean;
  readonly upstreams: readonly UpstreamConfig[];
  /** What the environment says of providers of the catalogue. Default: nothing. */
  readonly serviceProviders?: readonly ServiceProvider[];
  readonly clock: Clock;
}

/**
 * The upstreams of the environment, the data files of the providers and, if asked for, the sandbox, as one catalogue.
 * @throws Error for a data file that is not well formed
 */
export function createCatalog({ sandbox, upstreams, serviceProviders = [], clock }: CatalogOptions): Catalog {
  const listed = listedProviders(serviceProviders.flatMap(({ id, baseUrl }) => (baseUrl === undefined ? [] : [id])));
  const files = [...PROVIDER_IDS, ...(sandbox ? ['sandbox'] : [])].map((name) => readDataFile(name, listed));
  const models = new Map(files.flatMap(({ models }) => models.map((model) => [model.id, model])));
  const outputsOf = (modelId: string) => models.get(modelId)?.mappings[0]?.outputModalities;
  const date = youngest(files);
  const known: CatalogData = { date: '', providers: listed, models: [] };
  return catalogOf([...upstreams.map((upstream) => upstreamData(upstream, outputsOf, date)), known, ...files], clock);
}

/** The catalogue of these parts; what is said of one model in several, the last one says. */
export function catalogOf(parts: readonly CatalogData[], clock: Clock): Catalog {
  const models = mergeModels(parts);
  const providers = parts.flatMap((part) => part.providers).sort(byId);
  const mappings = models.flatMap((model) => model.mappings).sort(byId);
  const index = indexNames(models);
  const active = activeMappings(clock);
  return {
    resolve(name) {
      const found = index.get(name);
      return found === undefined ? undefined : active(found);
    },
    retirement: (name) => lastDate(index.get(name)?.map(({ deactivatedAt }) => deactivatedAt) ?? [])?.slice(0, 10),
    mappings: () => mappings,
    models: () => models,
    providers: () => providers,
    digest: digestOf({ models, providers }),
    date: youngest(parts),
  };
}

const youngest = (parts: readonly CatalogData[]): string =>
  parts
    .map(({ date }) => date)
    .sort()
    .at(-1) ?? '';

const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** One model for each canonical id; a model that several parts serve has the mappings and aliases of all of them. */
function mergeModels(parts: readonly CatalogData[]): CatalogModel[] {
  const byModel = Map.groupBy(
    parts.flatMap((part) => part.models),
    ({ id }) => id,
  );
  return [...byModel.values()].map(mergeModel).sort(byId);
}

/** What parts say differently, the last one says. */
function mergeModel([first, ...others]: readonly CatalogModel[]): CatalogModel {
  if (first === undefined) throw new Error('no model to merge');
  const all = [first, ...others];
  const aliases = [...new Set(all.flatMap((model) => model.aliases))];
  const mappings = all.flatMap((model) => model.mappings).map((mapping) => withAliases(mapping, aliases));
  let merged = first;
  for (const model of others) merged = { ...merged, ...model };
  return { ...merged, aliases, mappings: mappings.sort(byId) };
}

/** Rules mean a mapping by every alias of its model, also by one that another part has brought; a custom one has one name. */
function withAliases(mapping: Mapping, aliases: readonly string[]): Mapping {
  if (mapping.custom) return mapping;
  const names = mappingNames(mapping, aliases);
  return names.length === mapping.names.length ? mapping : { ...mapping, names };
}

/** Every name a request may use. A canonical id wins over an alias of the same text. */
function indexNames(models: readonly CatalogModel[]): Map<string, readonly Mapping[]> {
  const index = new Map<string, readonly Mapping[]>();
  for (const model of models) index.set(model.id, model.mappings);
  for (const model of models) {
    for (const alias of model.aliases) if (!index.has(alias)) index.set(alias, model.mappings);
  }
  for (const model of models) for (const mapping of model.mappings) index.set(mapping.id, [mapping]);
  for (const model of models) {
    for (const mapping of model.mappings) {
      for (const name of mapping.names) {
        const pinned = name.startsWith(`${mapping.providerId}/`);
        if (pinned && !index.has(name)) index.set(name, [mapping]);
      }
    }
  }
  return index;
}

/** The mappings whose deactivation, if any, lies ahead. Nothing is copied where nothing is ever deactivated. */
function activeMappings(clock: Clock): (mappings: readonly Mapping[]) => readonly Mapping[] {
  const ends = new WeakMap<Mapping, number>();
  const endOf = (mapping: Mapping, deactivatedAt: string): number => {
    const known = ends.get(mapping);
    if (known !== undefined) return known;
    const end = Date.parse(deactivatedAt);
    ends.set(mapping, end);
    return end;
  };
  const isActive = (mapping: Mapping): boolean =>
    mapping.deactivatedAt === undefined || endOf(mapping, mapping.deactivatedAt) > clock.now();
  return (mappings) => (mappings.every(isActive) ? mappings : mappings.filter(isActive));
}

function digestOf(content: unknown): string {
  const text = JSON.stringify(content, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return createHash('sha256').update(text).digest('hex');
}
