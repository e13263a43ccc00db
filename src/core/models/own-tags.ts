import type { Mapping } from '../../domain/model.ts';
import type { OrganizationProviders, TagSet } from '../../domain/provider.ts';
import { getOrMake } from '../../lib/get-or-make.ts';

/** Names of the tags by which the catalogue states facts. */
const FACTS: readonly string[] = ['no_training', 'region', 'retention', 'stability'];

/** Whether a tag says what the catalogue says where it knows it. */
export const statesFact = (tag: string): boolean => FACTS.includes(tag.split(':', 1).join());

/** Whether the catalogue states facts of a mapping. Of custom models and upstreams it knows nothing. */
export const hasFacts = ({ tags }: Mapping): boolean => tags.length > 0;

/** A mapping as an organization sees it: with its own tags. */
export type SeeMapping = (mapping: Mapping) => Mapping;

/** What was made of which mapping of the catalogue. */
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
