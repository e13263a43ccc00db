import type { Catalog } from '../catalog/catalog.ts';
import { modelNotFound } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { Providers } from '../providers/providers.ts';
import type { Principal } from './principal.ts';

/** What a request's `model` stands for. */
export interface Resolved {
  /** Every active mapping that could serve it and whose provider has a credential for the project; at least one. */
  readonly candidates: readonly Mapping[];
  /** The provider that the request pinned (`provider/model`). */
  readonly requestedProvider: string | undefined;
}

export type Resolve = (model: string, principal: Principal) => Resolved;

/** Names become candidates: the catalogue knows the names, the providers know for whom there is a credential. 404 otherwise. */
export function createResolve({ catalog, providers }: { catalog: Catalog; providers: Providers }): Resolve {
  return (model, { projectId }) => {
    const mappings = catalog.resolve(model);
    if (mappings === undefined) throw modelNotFound(`The model \`${model}\` does not exist.`);
    const candidates = mappings.filter(({ providerId }) => providers.hasCredential(providerId, projectId));
    const [first] = candidates;
    if (first === undefined) {
      throw modelNotFound(`No provider of the model \`${model}\` has a credential for this project.`);
    }
    return { candidates, requestedProvider: model.startsWith(`${first.providerId}/`) ? first.providerId : undefined };
  };
}
