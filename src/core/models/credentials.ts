import type { Mapping } from '../../domain/model.ts';
import type { CustomProvider, OrganizationProviders, SealedProviderKey } from '../../domain/provider.ts';

/** For which mappings the calls of a project have a credential (policy/README.md, "What is judged?"). */
export interface Credentials {
  /** By name. A request's `<name>/…` means them before the catalogue's providers (src/domain/README.md, "names"). */
  readonly customProviders: ReadonlyMap<string, CustomProvider>;
  /** A provider of the catalogue is out of reach while the organization has one of its own of that name. */
  isHidden(mapping: Mapping): boolean;
  /** The customer's own keys for the mapping's provider, in the order in which they are tried. */
  keysOf(mapping: Mapping): readonly SealedProviderKey[];
  has(mapping: Mapping): boolean;
}

/**
 * The one rule for who can call what: calls are routed by it, and analyses count by it.
 * @param projectId whose calls they are; null: whichever project's, so that the keys of all of them count
 * @param isServed whether the operator has a credential for a provider of the catalogue, or it needs none
 */
export function credentialsOf(
  own: OrganizationProviders,
  projectId: string | null,
  isServed: (providerId: string) => boolean,
): Credentials {
  const customProviders = new Map(own.providers.map((each) => [each.name, each]));
  const usable = own.keys.filter((key) => projectId === null || key.projectId === null || key.projectId === projectId);
  const keys = Map.groupBy(usable, ({ provider }) => provider);
  const keysOf = ({ custom, providerId }: Mapping): readonly SealedProviderKey[] =>
    keys.get(custom ? `custom:${providerId}` : providerId) ?? [];
  const isHidden = ({ custom, providerId }: Mapping): boolean => !custom && customProviders.has(providerId);
  return {
    customProviders,
    isHidden,
    keysOf,
    has(mapping) {
      const { custom, providerId } = mapping;
      const own = customProviders.get(providerId);
      if (custom !== (own !== undefined)) return false;
      return (own === undefined ? isServed(providerId) : own.keyless) || keysOf(mapping).length > 0;
    },
  };
}
