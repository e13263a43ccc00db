import type { Catalog } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-model.ts';
import { type ModelListOptions, modelList } from '../catalog/list.ts';
import type { Mapping } from '../domain/model.ts';
import type { Clock } from '../domain/time.ts';
import type { ModelList } from '../generated/types.ts';
import type { FindReach, Reach } from './reach.ts';
import type { FindReachable, ListCaller } from './reachable.ts';

export interface ListModelsDeps {
  readonly catalog: Catalog;
  readonly findReach: FindReach;
  readonly findReachable: FindReachable;
  readonly clock: Clock;
}

export interface ListedModels {
  readonly list: ModelList;
  /** By which policy and rules the list was judged; undefined for the whole catalogue, which nobody judged. */
  readonly policyRevision: string | undefined;
}

/** The list of what a caller may use; `all` of what his organization could, whatever the rules are; without a caller the whole catalogue. */
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
  created: 0,
  mappings: [mapping],
});

/** @returns the list's maker; a caller's list throws PolicyFailure when the policy cannot be evaluated */
export function createListModels({ catalog, findReach, findReachable, clock }: ListModelsDeps): ListModels {
  return async (caller, options, which = 'usable') => {
    const list = (models: readonly CatalogModel[]) => modelList(models, catalog.providers(), options, clock.now());
    const withCustom = ({ custom }: Reach) => [...catalog.models(), ...custom.map(customModel)];
    if (caller === undefined) return { list: list(catalog.models()), policyRevision: undefined };
    if (which === 'all')
      return { list: list(withCustom(await findReach(caller.principal))), policyRevision: undefined };
    const { reach, usable, policyRevision } = await findReachable(caller);
    return { list: list(only(withCustom(reach), usable)), policyRevision };
  };
}
