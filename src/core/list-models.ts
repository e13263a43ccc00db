import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Catalog } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-file.ts';
import { type ModelListOptions, modelList } from '../catalog/model-list.ts';
import type { Mapping } from '../domain/model.ts';
import type { Alias } from '../domain/provider.ts';
import type { ModelList } from '../generated/types.ts';
import type { CoreContext } from './core-context.ts';
import { actionOf } from './operations.ts';
import { expanded, type Reach } from './reach.ts';
import type { ListCaller } from './reachable.ts';
import { meaningOf, type OwnModels } from './resolve.ts';

interface ListedModels {
  readonly list: ModelListBytes;
  /** The policy and rules by which the list was judged; undefined for the whole catalogue, which is not judged. */
  readonly policyRevision: string | undefined;
}

/**
 * The list of what a caller may use; `all` of what the caller's organization could, whatever the rules are; without a caller the
 * whole catalogue. Lists that hold the same are built once, and again after a minute: models are deactivated at dates.
 */
export type ListModels = (
  caller: ListCaller | undefined,
  options: ModelListOptions,
  which?: 'usable' | 'all',
) => Promise<ListedModels>;

const only = (models: readonly CatalogModel[], keep: (mapping: Mapping) => boolean): CatalogModel[] =>
  models
    .map((model) => ({ ...model, mappings: model.mappings.filter(keep) }))
    .filter(({ mappings }) => mappings.length > 0);

/** A custom model as one of the catalogue: its only name is `<custom>/<model>`. */
const customModel = (mapping: Mapping): CatalogModel => ({
  id: mapping.id,
  name: mapping.id,
  aliases: [],
  description: `${mapping.modelId} at the custom provider ${mapping.providerId}.`,
  family: mapping.providerId,
  created: Math.floor((mapping.createdAt ?? 0) / 1000),
  mappings: [mapping],
});

/** An alias as a model of the catalogue. @param mappings those that the list is about, in the order of the alias */
const aliasModel = ({ name, createdAt }: Alias, mappings: readonly Mapping[]): CatalogModel => ({
  id: name,
  name,
  aliases: [],
  description: `An alias of ${[...new Set(mappings.map(({ custom, id, modelId }) => (custom ? id : modelId)))].join(', ')}.`,
  family: 'organization',
  created: Math.floor(createdAt / 1000),
  mappings,
});

/**
 * The models of the catalogue, as an organization sees them, and its own, each with the mappings to keep. Aliases come first, and take
 * the place of names of the catalogue; a list of mappings, each under its own name, has none.
 */
export function modelsFor(
  catalog: Catalog,
  own: OwnModels & Pick<Reach, 'aliases'>,
  keep: (mapping: Mapping) => boolean,
  isMapped: boolean,
): CatalogModel[] {
  const { aliases, custom, seen } = own;
  const known = catalog.models().map((model) => ({ ...model, mappings: model.mappings.map(seen) }));
  const models = only([...known, ...custom.map(customModel)], keep);
  if (isMapped || aliases.size === 0) return models;
  const named = [...aliases.values()].map((alias) =>
    aliasModel(alias, expanded(alias, (name) => meaningOf(name, catalog, own)).mappings.filter(keep)),
  );
  const isFree = (name: string): boolean => !aliases.has(name);
  const others = models.filter(({ id }) => isFree(id));
  return [
    ...named.filter(({ mappings }) => mappings.length > 0).sort((a, b) => (a.id < b.id ? -1 : 1)),
    ...others.map((model) =>
      model.aliases.every(isFree) ? model : { ...model, aliases: model.aliases.filter(isFree) },
    ),
  ];
}

/** Whether some endpoint serves a mapping: of those that moderate, only the configured model does. */
export const servedWith =
  (moderationModel: string) =>
  (mapping: Mapping): boolean =>
    actionOf(mapping) !== 'moderation' || mapping.names.includes(moderationModel);

/** @returns the list's maker; a caller's list throws PolicyFailure when the policy cannot be evaluated */
export function createListModels({
  catalog,
  findReach,
  findReachable,
  clock,
  moderationModel,
  telemetry,
}: Pick<
  CoreContext,
  'catalog' | 'findReach' | 'findReachable' | 'clock' | 'moderationModel' | 'telemetry'
>): ListModels {
  const kept = new KeptLists();
  const isServed = servedWith(moderationModel);

  /** @param of what the models are chosen by */
  const listOf = (
    of: string,
    options: ModelListOptions,
    models: () => readonly CatalogModel[],
  ): Promise<ModelListBytes> => {
    const { includeDeactivated, excludeDeprecated, noTraining, mapped } = options;
    const key = [of, includeDeactivated, excludeDeprecated, noTraining, mapped].join(' ');
    return kept.get(key, () => {
      const startedAt = performance.now();
      const list = new ModelListBytes(modelList(only(models(), isServed), catalog.providers(), options, clock.now()));
      telemetry.ran('building a list of models', startedAt, list.bytes.length);
      return list;
    });
  };

  return async (caller, options, which = 'usable') => {
    if (caller === undefined) {
      return { list: await listOf('catalogue', options, () => catalog.models()), policyRevision: undefined };
    }
    if (which === 'all') {
      const reach = await findReach(caller.principal);
      return {
        list: await listOf(`all ${reach.id}`, options, () => modelsFor(catalog, reach, () => true, options.mapped)),
        policyRevision: undefined,
      };
    }
    const { id, reach, usable, policyRevision } = await findReachable(caller);
    return {
      list: await listOf(`usable ${id}`, options, () => modelsFor(catalog, reach, usable, options.mapped)),
      policyRevision,
    };
  };
}

const KEPT_FOR_MS = 60_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** Memory for each byte of a list: the byte, and the names that point into it. */
const COST_OF_A_BYTE = 2;

/**
 * Lists of models by what they were made of, for a minute, in bounded memory. A list is built once for all who
 * ask meanwhile, and at most one in a turn of the event loop: each takes some 10 ms.
 */
class KeptLists {
  readonly #kept = new LRUCache<string, ModelListBytes>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => COST_OF_A_BYTE * bytes.length,
    ttl: KEPT_FOR_MS,
  });
  readonly #building = new Map<string, Promise<ModelListBytes>>();
  #lastTurn: Promise<void> = Promise.resolve();

  /** The list under this key; rejects with what `build` throws. */
  async get(key: string, build: () => ModelListBytes): Promise<ModelListBytes> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const building = this.#building.get(key) ?? this.#build(key, build);
    this.#building.set(key, building);
    return building;
  }

  async #build(key: string, build: () => ModelListBytes): Promise<ModelListBytes> {
    const turn = this.#lastTurn.then(() => setImmediate());
    this.#lastTurn = turn;
    await turn;
    try {
      const list = build();
      this.#kept.set(key, list);
      return list;
    } finally {
      this.#building.delete(key);
    }
  }
}

/** A list of models as the bytes that everyone gets, and where in them each model is. */
export class ModelListBytes {
  /** The whole list, as JSON. */
  readonly bytes: Buffer;
  /** ETag of these bytes, in quotes. */
  readonly etag: string;
  readonly #places = new Map<string, readonly [start: number, end: number]>();

  constructor({ object, data }: ModelList) {
    const head = `{"object":${JSON.stringify(object)},"data":[`;
    const entries = data.map((model) => JSON.stringify(model));
    this.bytes = Buffer.from(`${head}${entries.join(',')}]}`);
    this.etag = `"${hash('sha256', this.bytes, 'base64url')}"`;
    let start = Buffer.byteLength(head);
    const places = entries.map((entry) => {
      const place = [start, start + Buffer.byteLength(entry)] as const;
      start = place[1] + 1;
      return place;
    });
    // An id means its model before an alias does.
    for (const names of [data.map(({ id }) => [id]), data.map(({ aliases = [] }) => aliases)]) {
      for (const [index, place] of places.entries()) this.#name(names[index] ?? [], place);
    }
  }

  /** The model that a name means, an id or an alias, as JSON. */
  find(name: string): Buffer | undefined {
    const place = this.#places.get(name);
    return place === undefined ? undefined : this.bytes.subarray(...place);
  }

  /** Every id and alias. */
  names(): Iterable<string> {
    return this.#places.keys();
  }

  #name(names: readonly string[], place: readonly [number, number]): void {
    for (const name of names) if (!this.#places.has(name)) this.#places.set(name, place);
  }
}
