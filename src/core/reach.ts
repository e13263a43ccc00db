import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type ApiError, modelNotFound } from '../domain/errors.ts';
import { comparePrice, type Mapping } from '../domain/model.ts';
import {
  type Alias,
  type CustomProvider,
  type EncryptionKey,
  type OrganizationProviders,
  openSecret,
  SANDBOX,
  type SealedProviderKey,
  type TagSet,
} from '../domain/provider.ts';
import type { Clock } from '../domain/time.ts';
import { getOrMake } from '../lib/collections.ts';
import { type Credential, type Provider, type Providers, parseBaseUrl } from '../providers/providers.ts';
import type { Store } from '../store/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Principal } from './authorize.ts';

/** Destination of one attempt. */
export interface Target {
  readonly mapping: Mapping;
  readonly provider: Provider;
  readonly credential: Credential;
}

/** Providers and models that the calls of one project can reach besides the catalogue, with their credentials. Immutable. */
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
  /** The provider of the mapping; undefined when it cannot be called. */
  provider(mapping: Mapping): Provider | undefined;
  /** The ways to call the mapping, as it is seen now, in the order in which they are tried: the customer's own keys, then the service's. */
  targets(mapping: Mapping): readonly Target[];
}

interface ReachDeps {
  readonly store: Pick<Store, 'organizationProviders'>;
  readonly providers: Providers;
  /** All that are accepted. */
  readonly encryptionKeys: readonly EncryptionKey[];
  readonly telemetry: Telemetry;
}

/**
 * The reach of a principal's calls; the same object as long as nothing has changed.
 * @param known the organization's own providers, if they were read a moment ago; otherwise they are read
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

/** For which mappings the calls of a project have a credential (policy/reference.md, "What is judged"). */
interface Credentials {
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

/** Names of the tags by which the catalogue states facts. */
const FACTS: readonly string[] = ['no_training', 'region', 'retention', 'stability'];

/** Whether a tag says what the catalogue says where it knows it. */
export const statesFact = (tag: string): boolean => FACTS.includes(tag.split(':', 1).join());

/** Whether the catalogue states facts of a mapping. Of custom models and upstreams it knows nothing. */
export const hasFacts = ({ tags }: Mapping): boolean => tags.length > 0;

/** A mapping as an organization sees it: with its own tags. */
export type SeeMapping = (mapping: Mapping) => Mapping;

/** The catalogue's mapping behind each one that was made of it. */
const originals = new WeakMap<Mapping, Mapping>();

type Own = Pick<OrganizationProviders, 'tagSets' | 'keys'>;

const seers = new WeakMap<readonly TagSet[], SeeMapping>();

/**
 * The mappings as an organization sees them: those of which it says nothing are themselves, the others always the same objects;
 * what another organization sees of a mapping, or this one saw before, is seen as the mapping. Own tags state no fact of what the
 * catalogue knows, also where they were stored before it knew. Where the organization calls a provider at another address, what the
 * catalogue knows of the provider is not known.
 */
export const seenBy = ({ tagSets, keys }: Own): SeeMapping =>
  getOrMake(seers, tagSets, () => {
    const byTarget = new Map(tagSets.map(({ target, tags }) => [target, tags]));
    const moved = new Set(keys.flatMap(({ provider, baseUrl }) => (baseUrl === null ? [] : [provider])));
    const says = byTarget.size > 0 || moved.size > 0;
    const made = new WeakMap<Mapping, Mapping>();
    const see = (original: Mapping): Mapping =>
      withTags(moved.has(original.providerId) ? elsewhere(original) : original, original, byTarget);
    return (mapping) => {
      const original = originals.get(mapping) ?? mapping;
      return says ? getOrMake(made, original, () => see(original)) : original;
    };
  });

/** The model at another server of its provider's API. */
function elsewhere({ region: _, ...original }: Mapping): Mapping {
  return { ...original, tags: original.tags.filter((tag) => tag.startsWith('stability:')) };
}

function withTags(known: Mapping, original: Mapping, byTarget: ReadonlyMap<string, readonly string[]>): Mapping {
  const tags = targetsOf(original).flatMap((target) => byTarget.get(target) ?? []);
  const own = hasFacts(original) ? tags.filter((tag) => !statesFact(tag)) : tags;
  if (own.length === 0 && known === original) return original;
  const seen: Mapping = { ...known, tags: [...new Set([...known.tags, ...own])].sort() };
  originals.set(seen, original);
  return seen;
}

/** By what an organization can mean a mapping when it puts tags on it: each of its names, or all of its provider's. */
export const targetsOf = ({ providerId, names }: Mapping): string[] => [`${providerId}/*`, ...names];

/** The present meaning of an alias, and the order in which its candidates are tried. */
export interface AliasOrder {
  readonly alias: Alias;
  /** Those of the first model, cheapest first, then those of the second, and so on; each once. */
  readonly mappings: readonly Mapping[];
  /** The position in the alias of the model that brought a mapping, by the mapping's id. */
  readonly positions: ReadonlyMap<string, number>;
}

const NONE: ReadonlyMap<string, Alias> = new Map();

/**
 * The aliases that the requests of a project can name, by name: its own, and those of its organization whose names it has not taken.
 * @param projectId null: of no project in particular, so only the organization's
 */
export function aliasesOf(
  { aliases }: Pick<OrganizationProviders, 'aliases'>,
  projectId: string | null,
): ReadonlyMap<string, Alias> {
  if (aliases.length === 0) return NONE;
  const shared = aliases.filter((alias) => alias.projectId === null);
  const own = aliases.filter((alias) => alias.projectId !== null && alias.projectId === projectId);
  return new Map([...shared, ...own].map((alias) => [alias.name, alias]));
}

/**
 * The models of an alias as mappings. A model that nothing has any more brings none.
 * @param meaningOf of a name as if there were no aliases: an alias never leads to another one, whatever is named so later
 */
export function expanded(alias: Alias, meaningOf: (name: string) => readonly Mapping[] | undefined): AliasOrder {
  const positions = new Map<string, number>();
  const mappings: Mapping[] = [];
  for (const [position, model] of alias.models.entries()) {
    for (const mapping of (meaningOf(model) ?? []).toSorted(comparePrice)) {
      if (positions.has(mapping.id)) continue;
      positions.set(mapping.id, position);
      mappings.push(mapping);
    }
  }
  return { alias, mappings, positions };
}

export const noModelServed = (alias: string): ApiError =>
  modelNotFound(`No model of the alias \`${alias}\` is served any more.`);

/**
 * Candidates of an alias in the order of their attempts. Without weights it is the order of the alias. With weights the first model is
 * drawn among those that are left, and the others follow in the order of the alias.
 * @param candidates some of the order's mappings, in its order. @param requestId decides the draw: the same id draws the same
 */
export function inOrder(
  { alias: { weights }, positions }: AliasOrder,
  candidates: readonly Mapping[],
  requestId: string,
): readonly Mapping[] {
  if (weights === null) return candidates;
  const positionOf = ({ id }: Mapping): number => positions.get(id) ?? 0;
  const left = [...new Set(candidates.map(positionOf))];
  const first = drawn(
    left.map((position) => [position, weights[position] ?? 0]),
    requestId,
  );
  const isFirst = (mapping: Mapping): boolean => positionOf(mapping) === first;
  return [...candidates.filter(isFirst), ...candidates.filter((mapping) => !isFirst(mapping))];
}

/** One of the positions, each as likely as its weight says; undefined: no weight is above 0. */
function drawn(weighted: readonly (readonly [position: number, weight: number])[], seed: string): number | undefined {
  const total = weighted.reduce((sum, [, weight]) => sum + weight, 0);
  let rest = unitOf(seed) * total;
  for (const [position, weight] of weighted) {
    if (rest < weight) return position;
    rest -= weight;
  }
  return undefined;
}

const BYTES = 6;

/** A number from 0 up to 1, which is not reached: the first 48 bits of the SHA-256 of a text. */
const unitOf = (text: string): number => hash('sha256', text, 'buffer').readUIntBE(0, BYTES) / 2 ** (8 * BYTES);

/** Failures in a row after which a target rests, and for how long (src/core/README.md, "order"). */
const FAILURES = 3;
const REST_MS = 30_000;
const MAX_REMEMBERED = 10_000;
/** State of a target that has not failed, or has succeeded since. */
const FRESH = { failures: 0, restsUntil: 0 };

interface FailureRecord {
  failures: number;
  /** Epoch milliseconds. */
  restsUntil: number;
  /** One call is trying whether it has recovered; the others go on avoiding it. */
  probing: boolean;
}

/**
 * Which targets have failed recently. A mapping with another credential is another target: one customer's bad key must not make
 * everyone's provider rest. Kept in memory: a start begins with good faith.
 */
export class Health {
  readonly #clock: Clock;
  readonly #records = new LRUCache<string, FailureRecord>({ max: MAX_REMEMBERED });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The given targets in their order, with those that rest at the end. */
  ordered(targets: readonly Target[]): Target[] {
    const resting = targets.filter((target) => this.#rests(target));
    return resting.length === 0 ? [...targets] : [...targets.filter((target) => !resting.includes(target)), ...resting];
  }

  /** Whether this attempt is the one that tries a target that has rested; to be followed by `ended`. */
  begun(target: Target): boolean {
    const record = this.#recordOf(target);
    if (record === undefined || record.failures < FAILURES || record.probing) return false;
    if (record.restsUntil > this.#clock.now()) return false;
    record.probing = true;
    return true;
  }

  /**
   * @param outcome undefined when the attempt says nothing about the target: its caller left, or asked for what cannot be done
   * @param retryAfterMs how long the target itself wants to rest: from now on, after the first failure too
   */
  ended(target: Target, wasProbe: boolean, outcome: 'succeeded' | 'failed' | undefined, retryAfterMs?: number): void {
    const record = this.#recordOf(target);
    if (record !== undefined && wasProbe) record.probing = false;
    if (outcome === 'succeeded') {
      if (record !== undefined) Object.assign(record, FRESH);
    } else if (outcome === 'failed') {
      const failed = record ?? { ...FRESH, probing: false };
      const now = this.#clock.now();
      failed.failures += 1;
      if (retryAfterMs !== undefined) {
        failed.failures = Math.max(FAILURES, failed.failures);
        failed.restsUntil = now + retryAfterMs;
      } else if (failed.failures >= FAILURES) {
        // A rest that the provider asked for stays: a failure that names none does not shorten it.
        failed.restsUntil = Math.max(failed.restsUntil, now + REST_MS);
      }
      this.#records.set(keyOf(target), failed);
    }
  }

  /** Number of targets that rest now. */
  resting(): number {
    let resting = 0;
    for (const record of this.#records.values()) if (this.#isResting(record)) resting += 1;
    return resting;
  }

  /** As long as nothing has failed, no key is made to look for. */
  #recordOf(target: Target): FailureRecord | undefined {
    return this.#records.size === 0 ? undefined : this.#records.get(keyOf(target));
  }

  #rests(target: Target): boolean {
    const record = this.#recordOf(target);
    return record !== undefined && this.#isResting(record);
  }

  #isResting({ failures, probing, restsUntil }: FailureRecord): boolean {
    return failures >= FAILURES && (probing || restsUntil > this.#clock.now());
  }
}

/** Two organizations may have a provider of one name: its address tells them apart. */
const keyOf = ({ mapping, provider: { base }, credential }: Target): string =>
  `${mapping.id} ${mapping.revision ?? ''} ${base.origin}${base.path} ${credential.providerKeyId ?? credential.source}`;
