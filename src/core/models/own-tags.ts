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

const seers = new WeakMap<readonly TagSet[], SeeMapping>();

/**
 * The mappings as an organization sees them: those on which none of its tags stand are themselves, the others always the same
 * objects; what other tags made of a mapping is seen as the mapping. Tags state no fact of what the catalogue knows, also where
 * they were stored before it knew.
 */
export const seenBy = ({ tagSets }: Pick<OrganizationProviders, 'tagSets'>): SeeMapping =>
  getOrMake(seers, tagSets, () => {
    const byTarget = new Map(tagSets.map(({ target, tags }) => [target, tags]));
    const made = new WeakMap<Mapping, Mapping>();
    return (mapping) => {
      const original = originals.get(mapping) ?? mapping;
      return byTarget.size === 0 ? original : getOrMake(made, original, () => tagged(original, byTarget));
    };
  });

function tagged(original: Mapping, byTarget: ReadonlyMap<string, readonly string[]>): Mapping {
  const tags = targetsOf(original).flatMap((target) => byTarget.get(target) ?? []);
  const own = hasFacts(original) ? tags.filter((tag) => !statesFact(tag)) : tags;
  if (own.length === 0) return original;
  const seen: Mapping = { ...original, tags: [...new Set([...original.tags, ...own])].sort() };
  originals.set(seen, original);
  return seen;
}

/** By what an organization can mean a mapping when it puts tags on it: each of its names, or all of its provider's. */
export const targetsOf = ({ providerId, names }: Mapping): string[] => [`${providerId}/*`, ...names];
