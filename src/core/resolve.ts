import type { Catalog } from '../catalog/catalog.ts';
import { modelNotFound } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { Principal } from './principal.ts';
import type { FindReach, Reach } from './reach.ts';

/** What a request's `model` stands for. */
export interface Resolved {
  /** Every active mapping that could serve it and whose provider has a credential for the project; at least one. */
  readonly candidates: readonly Mapping[];
  /** The provider that the request pinned (`provider/model`). */
  readonly requestedProvider: string | undefined;
}

/** @throws ApiError 404 */
export type Resolve = (model: string, principal: Principal) => Promise<Resolved>;

/** What a name means: the part before the first `/` is looked up as custom provider, then as provider (decisions.md, section 2). */
function mappingsOf(name: string, catalog: Catalog, reach: Reach): readonly Mapping[] | undefined {
  const slash = name.indexOf('/');
  if (slash === -1 || !reach.isCustomProvider(name.slice(0, slash))) return catalog.resolve(name);
  const own = reach.custom.filter(({ id }) => id === name);
  return own.length === 0 ? undefined : own;
}

/** Names become candidates: the catalogue and the organization know the names, the reach tells for whom there is a credential. */
export function createResolve({ catalog, findReach }: { catalog: Catalog; findReach: FindReach }): Resolve {
  return async (model, principal) => {
    const reach = await findReach(principal);
    const mappings = mappingsOf(model, catalog, reach);
    if (mappings === undefined) throw modelNotFound(`The model \`${model}\` does not exist.`);
    const candidates = mappings.filter((mapping) => reach.has(mapping));
    const [first] = candidates;
    if (first === undefined) {
      throw modelNotFound(`No provider of the model \`${model}\` has a credential for this project.`);
    }
    return { candidates, requestedProvider: model.startsWith(`${first.providerId}/`) ? first.providerId : undefined };
  };
}
