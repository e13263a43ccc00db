import type { Catalog } from '../../catalog/catalog.ts';
import { didYouMean, KnownNames } from '../../core/known-names.ts';
import { hasFacts, statesFact, targetsOf } from '../../core/reach.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { sortedTags, TAG_SHAPE } from '../../domain/provider.ts';
import { formatTime } from '../../domain/time.ts';
import type { Deletion, TagSetAnswer, TagSetList, TagSetRecord } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/custom-names.ts';
import { type CustomNames, readCustomNames } from '../../store/providers/custom-names.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';

const MAX_TAG_SETS = 500;

const EXPLANATIONS = [
  { at: /^\/target$/, must: 'must be the name of a model, or `<provider>/*`' },
  { at: /^\/tags\/\d+$/, must: TAG_SHAPE },
];

/** Inputs for a write of tags, apart from the database; `now` in epoch ms. */
export interface TagSetWrite {
  readonly now: number;
  readonly catalog: Pick<Catalog, 'mappings' | 'providers'>;
}

/**
 * Puts tags of the organization's own on a model or a provider (policy/reference.md, "Tags of your own"). A target that nothing has, or
 * that has tags already, and a fact that the catalogue states 400; role 403. @param body as `TagSetCreate`, unchecked
 */
export function createTagSet(db: Database, actor: Actor, body: unknown, { now, catalog }: TagSetWrite): TagSetAnswer {
  const { target, tags } = checkShape(validator('TagSetCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const present = store.everyTagSet(db, organizationId);
    const same = present.find((each) => each.target === target);
    if (same !== undefined) throw invalidRequest(`"${target}" has tags already: change ${same.id}.`, '/target');
    if (present.length >= MAX_TAG_SETS) {
      throw invalidRequest(`An organization has tags on at most ${MAX_TAG_SETS} targets.`);
    }
    const custom = readCustomNames(db, organizationId);
    checkTarget(target, catalog, custom);
    checkFacts(target, tags, catalog, custom);
    const tagSet = view(
      store.insertTagSet(db, organizationId, { id: newId('tags'), target, tags: sortedTags(tags) }, now),
    );
    recordChange(db, actor, 'tag_set', 'create', { before: null, after: tagSet }, now);
    return { tagSet };
  });
}

/** A page of the organization's own tags, newest first; 403 for developers. */
export function listTagSets(db: Database, actor: Actor, page: PageRequest): TagSetList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listTagSets(db, actor.organizationId, page);
  return { tagSets: items.map(view), nextCursor };
}

/** The tags of one target; 404 when there are none of this id, 403 for developers. */
export function getTagSet(db: Database, actor: Actor, id: string): TagSetAnswer {
  checkManagesOrganization(actor);
  return { tagSet: view(store.getTagSet(db, actor.organizationId, id)) };
}

/** Puts other tags on the same target. @param body as `TagSetPatch`, unchecked */
export function changeTagSet(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  { now, catalog }: TagSetWrite,
): TagSetAnswer {
  const { tags } = checkShape(validator('TagSetPatch'), body, EXPLANATIONS.slice(1));
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const before = view(store.getTagSet(db, organizationId, id));
    checkFacts(before.target, tags, catalog, readCustomNames(db, organizationId));
    const tagSet = view(store.updateTagSet(db, organizationId, id, sortedTags(tags), now));
    recordChange(db, actor, 'tag_set', 'update', { before, after: tagSet }, now);
    return { tagSet };
  });
}

/** Takes the tags from their target. @param now epoch ms */
export function deleteTagSet(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    checkManagesOrganization(actor);
    removeTagSet(db, actor, store.getTagSet(db, actor.organizationId, id), now);
    return { id, deleted: true };
  });
}

/**
 * Removes the tags of deleted targets, so that a later target of that name gets none.
 * @param isGone of a target
 * @param now epoch ms
 */
export function removeTagsOf(db: Database, actor: Actor, isGone: (target: string) => boolean, now: number): void {
  db.transaction(() => {
    const sets = store.everyTagSet(db, actor.organizationId);
    for (const set of sets.filter(({ target }) => isGone(target))) removeTagSet(db, actor, set, now);
  });
}

function removeTagSet(db: Database, actor: Actor, set: store.TagSetRecord, now: number): void {
  store.deleteTagSet(db, actor.organizationId, set.id);
  recordChange(db, actor, 'tag_set', 'delete', { before: view(set), after: null }, now);
}

/** A mistyped target would never be missed: nothing would ask for its tags. */
function checkTarget(target: string, catalog: TagSetWrite['catalog'], custom: CustomNames): void {
  const known = new KnownNames(catalog, custom);
  const provider = ofProvider(target);
  const isKnown =
    provider === undefined
      ? known.hasModel(target)
      : known.hasProvider(provider) || custom.providers.includes(provider);
  if (isKnown) return;
  throw invalidRequest(`Nothing has the name "${target}"${didYouMean(known.nearestModel(target))}`, '/target');
}

const ofProvider = (target: string): string | undefined => (target.endsWith('/*') ? target.slice(0, -2) : undefined);

/** Only the catalogue may state its own facts: otherwise rules would follow tags that their author has not read. */
function checkFacts(
  target: string,
  tags: readonly string[],
  catalog: TagSetWrite['catalog'],
  custom: CustomNames,
): void {
  const at = tags.findIndex(statesFact);
  if (at === -1 || custom.providers.some((name) => target.startsWith(`${name}/`))) return;
  const stated = catalog.mappings().find((mapping) => hasFacts(mapping) && targetsOf(mapping).includes(target));
  if (stated === undefined) return;
  throw invalidRequest(
    `"${tags[at]}" would state a fact of ${stated.id}, and facts of the catalogue's models come from the catalogue: choose another name.`,
    `/tags/${at}`,
  );
}

const view = ({ id, createdAt, updatedAt, target, tags }: store.TagSetRecord): TagSetRecord => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  target,
  tags: [...tags],
});
