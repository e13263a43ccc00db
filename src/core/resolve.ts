import type { Catalog } from '../catalog/catalog.ts';
import { type ApiError, modelNotFound } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { PolicyInput } from '../generated/types.ts';
import type { Principal } from './principal.ts';
import type { FindReach, Reach } from './reach.ts';
import { doesNotServe, serves } from './serving.ts';

/** What a request's `model` stands for. */
export interface Resolved {
  /** Every active mapping that serves the action and whose provider has a credential for the project; at least one. */
  readonly candidates: readonly Mapping[];
  /** The provider that the request pinned (`provider/model`). */
  readonly requestedProvider: string | undefined;
}

/** @throws ApiError 404, or 400 for a model that is of no use to the action */
export type Resolve = (model: string, action: PolicyInput['action'], principal: Principal) => Promise<Resolved>;

/** What an organization's own providers make of names. */
export type OwnModels = Pick<Reach, 'custom' | 'isCustomProvider'>;

/** None of the model's providers can be called (decisions.md, section 4, "candidates"). */
export const noCredential = (model: string): ApiError =>
  modelNotFound(`No provider of the model \`${model}\` has a credential for this project.`);

/** What a name means: the part before the first `/` is looked up as custom provider, then as provider (decisions.md, section 2). */
export function meaningOf(name: string, catalog: Catalog, reach: OwnModels): readonly Mapping[] | undefined {
  const slash = name.indexOf('/');
  if (slash === -1 || !reach.isCustomProvider(name.slice(0, slash))) return catalog.resolve(name);
  const own = reach.custom.filter(({ id }) => id === name);
  return own.length === 0 ? undefined : own;
}

/** Names become candidates: the catalogue and the organization know the names, the reach tells for whom there is a credential. */
export function createResolve({ catalog, findReach }: { catalog: Catalog; findReach: FindReach }): Resolve {
  return async (model, action, principal) => {
    const reach = await findReach(principal);
    const mappings = meaningOf(model, catalog, reach);
    if (mappings === undefined) throw modelNotFound(`The model \`${model}\` does not exist.`);
    const callable = mappings.filter((mapping) => reach.has(mapping));
    if (callable.length === 0) throw noCredential(model);
    const candidates = callable.filter((mapping) => serves(mapping, action, reach));
    const [first] = candidates;
    if (first === undefined) throw doesNotServe(model, action);
    return { candidates, requestedProvider: model.startsWith(`${first.providerId}/`) ? first.providerId : undefined };
  };
}
