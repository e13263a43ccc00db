import type { Catalog } from '../../catalog/catalog.ts';
import type { CatalogModel } from '../../catalog/catalog-model.ts';
import { type ModelListOptions, modelList } from '../../catalog/list.ts';
import type { Mapping } from '../../domain/model.ts';
import type { Clock } from '../../domain/time.ts';
import type { Telemetry } from '../../telemetry.ts';
import { actionOf } from '../access/permitted-ids.ts';
import { KeptLists } from './kept-lists.ts';
import { ModelListBytes } from './model-list-bytes.ts';
import type { FindReach, Reach } from './reach.ts';
import type { FindReachable, ListCaller } from './reachable.ts';

export interface ListModelsDeps {
  readonly catalog: Catalog;
  readonly findReach: FindReach;
  readonly findReachable: FindReachable;
  readonly clock: Clock;
  /** The model that moderates: no endpoint serves another one. */
  readonly moderationModel: string;
  readonly telemetry: Pick<Telemetry, 'ran'>;
}

interface ListedModels {
  readonly list: ModelListBytes;
  /** By which policy and rules the list was judged; undefined for the whole catalogue, which nobody judged. */
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

export const only = (models: readonly CatalogModel[], keep: (mapping: Mapping) => boolean): CatalogModel[] =>
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

/** The models of the catalogue, as an organization sees them, and its own. */
export const withCustom = (catalog: Catalog, { custom, seen }: Pick<Reach, 'custom' | 'seen'>): CatalogModel[] => [
  ...catalog.models().map((model) => ({ ...model, mappings: model.mappings.map(seen) })),
  ...custom.map(customModel),
];

/** Whether some endpoint serves a mapping: of those that moderate, only the configured model does. */
export const servedWith =
  (moderationModel: string) =>
  (mapping: Mapping): boolean =>
    actionOf(mapping) !== 'moderation' || mapping.names.includes(moderationModel);

/** @returns the list's maker; a caller's list throws PolicyFailure when the policy cannot be evaluated */
export function createListModels(deps: ListModelsDeps): ListModels {
  const { catalog, findReach, findReachable, clock, moderationModel, telemetry } = deps;
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
        list: await listOf(`all ${reach.id}`, options, () => withCustom(catalog, reach)),
        policyRevision: undefined,
      };
    }
    const { id, reach, usable, policyRevision } = await findReachable(caller);
    return {
      list: await listOf(`usable ${id}`, options, () => only(withCustom(catalog, reach), usable)),
      policyRevision,
    };
  };
}
