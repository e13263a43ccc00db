import type { Mapping } from '../../domain/model.ts';
import {
  type Alias,
  type CustomProvider,
  type OrganizationProviders,
  SANDBOX,
  type SealedProviderKey,
} from '../../domain/provider.ts';
import { type EncryptionKey, openSecret } from '../../domain/sealed-secret.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { type Credential, type Provider, type Providers, parseBaseUrl } from '../../providers/providers.ts';
import type { Store } from '../../store/store.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { Principal } from '../access/principal.ts';
import { aliasesOf } from './aliases.ts';
import { credentialsOf } from './credentials.ts';
import { type SeeMapping, seenBy } from './own-tags.ts';

/** Where one attempt goes. */
export interface Target {
  readonly mapping: Mapping;
  readonly provider: Provider;
  readonly credential: Credential;
}

/** What the calls of one project can reach besides the catalogue, and with which credentials. Immutable. */
export interface Reach {
  /** Another one for every change of what can be reached: for those who remember what they made of it. */
  readonly id: number;
  /** The mappings of the organization's custom models, as it sees them. */
  readonly custom: readonly Mapping[];
  /** With the organization's own tags. */
  readonly seen: SeeMapping;
  /** By name: the project's, and those of the organization whose names the project has not taken. */
  readonly aliases: ReadonlyMap<string, Alias>;
  /** True when a request's `<name>/…` means a provider of the organization's own (src/domain/README.md, "names"). */
  isCustomProvider(name: string): boolean;
  /** True when there is a credential for another provider than the sandbox: then the sandbox's calls cost nothing. */
  isSandboxFree(): boolean;
  /** True when there is a credential to call the mapping with. */
  has(mapping: Mapping): boolean;
  /** Who serves the mapping; undefined when there is no way to call it. */
  provider(mapping: Mapping): Provider | undefined;
  /** The ways to call the mapping, as it is seen now, in the order in which they are tried: the customer's own keys, then the service's. */
  targets(mapping: Mapping): readonly Target[];
}

export interface ReachDeps {
  readonly store: Pick<Store, 'organizationProviders'>;
  readonly providers: Providers;
  /** All that are accepted. */
  readonly encryptionKeys: readonly EncryptionKey[];
  readonly telemetry: Telemetry;
}

/**
 * What a principal's calls can reach; the same object as long as nothing has changed.
 * @param known the organization's own providers, where they were read a moment ago; else they are read
 */
export type FindReach = (
  principal: Pick<Principal, 'organizationId' | 'projectId'>,
  known?: OrganizationProviders,
) => Promise<Reach>;

/** A provider with one credential for it. */
type Access = Pick<Target, 'provider' | 'credential'>;

export function createFindReach(deps: ReachDeps): FindReach {
  let made = new WeakMap<OrganizationProviders, Map<string, Reach>>();
  let revision = deps.providers.revision();
  let id = 0;
  return async ({ organizationId, projectId }, known) => {
    const own = known ?? (await deps.store.organizationProviders(organizationId));
    if (revision !== deps.providers.revision()) {
      made = new WeakMap();
      revision = deps.providers.revision();
    }
    const byProject = getOrMake(made, own, () => new Map<string, Reach>());
    return getOrMake(byProject, projectId, () => {
      id += 1;
      return reachOf(id, own, projectId, deps);
    });
  };
}

function reachOf(id: number, own: OrganizationProviders, projectId: string, deps: ReachDeps): Reach {
  const { providers } = deps;
  const isServed = (providerId: string): boolean => providers.serviceCredential(providerId) !== undefined;
  const { customProviders, isHidden, keysOf, has } = credentialsOf(own, projectId, isServed);
  const revisions = new Map(own.mappings.map((mapping) => [mapping.id, mapping.revision]));
  const accesses = new Map<string, readonly Access[]>();
  const seen = seenBy(own);
  let isSandboxFree: boolean | undefined;
  const accessesOf = (mapping: Mapping): readonly Access[] =>
    getOrMake(accesses, mapping.providerId, () => findAccesses(mapping, customProviders, keysOf(mapping), deps));

  return {
    id,
    custom: own.mappings.map(seen),
    seen,
    aliases: aliasesOf(own, projectId),
    isCustomProvider: (name) => customProviders.has(name),
    isSandboxFree: () => {
      isSandboxFree ??= providers.servesOthers || hasOwnProvider(own, projectId, deps);
      return isSandboxFree;
    },
    has: (mapping) => has(mapping) && (mapping.custom || providers.find(mapping.providerId) !== undefined),
    provider: (mapping) => accessesOf(mapping)[0]?.provider,
    targets: (mapping) =>
      isHidden(mapping) || (mapping.custom && revisions.get(mapping.id) !== mapping.revision)
        ? []
        : accessesOf(mapping).map((access) => ({ mapping: seen(mapping), ...access })),
  };
}

/** Whether an organization's project can call a provider of its own, or another of the catalogue with a key of its own. */
const hasOwnProvider = (
  { providers, mappings, keys }: OrganizationProviders,
  projectId: string,
  deps: ReachDeps,
): boolean =>
  providers.some(({ keyless, name }) => keyless && mappings.some(({ providerId }) => providerId === name)) ||
  keys.some(
    (key) =>
      key.provider !== SANDBOX &&
      (key.projectId === null || key.projectId === projectId) &&
      openKey(key, deps) !== undefined,
  );

function findAccesses(
  { custom, providerId }: Mapping,
  customProviders: ReadonlyMap<string, CustomProvider>,
  keys: readonly SealedProviderKey[],
  deps: ReachDeps,
): Access[] {
  const { providers } = deps;
  const own = custom ? customProviders.get(providerId) : undefined;
  const provider = own === undefined ? providers.find(providerId) : providers.custom(own);
  if (provider === undefined || custom !== (own !== undefined)) return [];
  const accesses = keys.flatMap((key) => {
    const credential = openKey(key, deps);
    return credential === undefined ? [] : [{ provider: providerOf(key, provider), credential }];
  });
  const service: Credential | undefined = own === undefined ? providers.serviceCredential(providerId) : undefined;
  if (service !== undefined) accesses.push({ provider, credential: service });
  if (own?.keyless === true && accesses.length === 0) accesses.push({ provider, credential: { source: 'byok' } });
  return accesses;
}

/** A key may name another address for its provider; it comes from the database, so it must be a public one. */
const providerOf = ({ baseUrl }: SealedProviderKey, provider: Provider): Provider =>
  baseUrl === null ? provider : { ...provider, base: parseBaseUrl(baseUrl), addresses: 'public' };

/** A key that cannot be opened is no credential; the others still serve. */
function openKey({ id, label, secret }: SealedProviderKey, deps: ReachDeps): Credential | undefined {
  try {
    return deps.providers.byok(id, label, openSecret(secret, id, ...deps.encryptionKeys));
  } catch (error) {
    deps.telemetry.warn('a provider key cannot be opened and is not used', {
      providerKeyId: id,
      error: error instanceof Error ? error.message : String(error),
    });
    return undefined;
  }
}
