import { createHash } from 'node:crypto';
import {
  canonicalModelId,
  PROVIDER_IDS,
  type ServiceProvider,
  type UpstreamConfig,
  type UpstreamModel,
} from '../config/upstreams.ts';
import { type Mapping, mappingNames, TEXT_ONLY } from '../domain/model.ts';
import { type Clock, lastDate } from '../domain/time.ts';
import type { CatalogProvider } from '../generated/types.ts';
import { type CatalogData, type CatalogModel, listedProviders, readDataFile } from './catalog-file.ts';

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

interface CatalogOptions {
  readonly sandbox: boolean;
  readonly upstreams: readonly Pick<UpstreamConfig, 'name' | 'models'>[];
  /** Settings of the environment for providers of the catalogue. Default: none. */
  readonly serviceProviders?: readonly Pick<ServiceProvider, 'id' | 'baseUrl'>[];
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

/** Merges parts of a model: the last part wins where they differ. */
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

/** Kinds of output of a model by the data files, such as `image`; undefined for a model that they do not know. */
type KnownOutputs = (modelId: string) => readonly string[] | undefined;

/**
 * The catalogue of an upstream that the environment names. Of its models nothing is known but the id, and the prices if the
 * operator states them: so they claim no capability beyond text. One that has the id of a known model gives what that one does.
 * @param date of the catalogue, `YYYY-MM-DD`, by which each is known to have been there
 */
function upstreamData(
  upstream: CatalogOptions['upstreams'][number],
  knownOutputs: KnownOutputs,
  date: string,
): CatalogData {
  const created = Date.parse(date) / 1000;
  return {
    date: '',
    providers: [{ id: upstream.name, name: upstream.name }],
    models: upstream.models.map((model) => upstreamModel(upstream.name, model, knownOutputs, created)),
  };
}

/**
 * Canonical model ids hold no `/`: an upstream id that does stands under its text with `--` instead, and as itself behind
 * the provider. It is no bare name: there its first part would name a provider.
 */
function upstreamModel(
  providerId: string,
  model: UpstreamModel,
  knownOutputs: KnownOutputs,
  created: number,
): CatalogModel {
  const { id: externalId } = model;
  const id = canonicalModelId(externalId);
  const mapping = upstreamMapping(providerId, id, model);
  const outputModalities = knownOutputs(id) ?? mapping.outputModalities;
  return {
    id,
    name: externalId,
    aliases: [],
    description: `${externalId} at ${providerId}.`,
    family: providerId,
    created,
    mappings: [{ ...mapping, outputModalities }],
  };
}

function upstreamMapping(
  providerId: string,
  modelId: string,
  { id: externalId, prices, ...limits }: UpstreamModel,
): Mapping {
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId }, []),
    providerNames: [providerId],
    prices,
    freeFlag: false,
    ...TEXT_ONLY,
    ...limits,
  };
}
