import type { Catalog } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-model.ts';
import { type ModelListOptions, modelList } from '../catalog/list.ts';
import type { Mapping } from '../domain/model.ts';
import { RecentMap } from '../domain/recent-map.ts';
import type { Clock } from '../domain/time.ts';
import type { ModelList } from '../generated/types.ts';
import type { Pdp } from '../policy/pdp.ts';
import type { Providers } from '../providers/providers.ts';
import { policyRevision } from './authorize.ts';
import { isPriced } from './call.ts';
import type { Documents } from './documents.ts';
import { permittedIds } from './permitted-ids.ts';
import type { Principal } from './principal.ts';

export interface ListModelsDeps {
  readonly catalog: Catalog;
  readonly providers: Providers;
  readonly documents: Documents;
  readonly pdp: () => Pdp;
  readonly clock: Clock;
}

/** Whose list it is: what a key may use and could call now, judged for the address it calls from. */
export interface ListCaller {
  readonly principal: Principal;
  readonly clientIp: string | null;
}

export interface ListedModels {
  readonly list: ModelList;
  /** By which policy and rules the list was judged; undefined for the whole catalogue, which nobody judged. */
  readonly policyRevision: string | undefined;
}

/** The model list; without a caller the whole catalogue. */
export type ListModels = (caller: ListCaller | undefined, options: ModelListOptions) => Promise<ListedModels>;

/** Most answers of the policy that are remembered. */
const MAX_REMEMBERED = 256;

const only = (models: readonly CatalogModel[], keep: (mapping: Mapping) => boolean): CatalogModel[] =>
  models
    .map((model) => ({ ...model, mappings: model.mappings.filter(keep) }))
    .filter(({ mappings }) => mappings.length > 0);

/** @returns the list's maker; a caller's list throws PolicyFailure when the policy cannot be evaluated */
export function createListModels({ catalog, providers, documents, pdp, clock }: ListModelsDeps): ListModels {
  const remembered = new RecentMap<string, ReadonlySet<string>>(MAX_REMEMBERED);

  async function permitted(engine: Pdp, caller: ListCaller): Promise<ReadonlySet<string>> {
    const { projectId } = caller.principal;
    const data = await documents(caller.principal);
    const key = JSON.stringify([engine.bundleDigest, data.digest, catalog.digest, projectId, caller.clientIp]);
    const known = remembered.get(key);
    if (known !== undefined) return known;
    const callable = catalog.mappings().filter(({ providerId }) => providers.hasCredential(providerId, projectId));
    const { subjects } = caller.principal;
    const ids = permittedIds(engine, data, { subjects, clientIp: caller.clientIp }, callable);
    remembered.set(key, ids);
    return ids;
  }

  return async (caller, options) => {
    const list = (models: readonly CatalogModel[]) => modelList(models, catalog.providers(), options, clock.now());
    if (caller === undefined) return { list: list(catalog.models()), policyRevision: undefined };
    const engine = pdp();
    const ids = await permitted(engine, caller);
    const { capped } = caller.principal;
    return {
      list: list(only(catalog.models(), (mapping) => ids.has(mapping.id) && (!capped || isPriced(mapping)))),
      policyRevision: policyRevision(engine.bundleDigest, caller.principal.ruleRevision),
    };
  };
}
