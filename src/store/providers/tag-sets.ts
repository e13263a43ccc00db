import { notFound } from '../../domain/errors.ts';
import type { TagSet } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../db/page.ts';
import { raiseRuleRevision } from '../db/rule-revision.ts';
import { build } from '../db/sql.ts';
import type { Row, TagSetsTable } from '../db/tables.ts';

/** An organization's own tags of one target, as they are stored. */
export type TagSetRecord = TagSet & Omit<Row<TagSetsTable>, 'tagsJson'>;

export type NewTagSet = Pick<TagSetRecord, 'id' | 'target' | 'tags'>;

export const toTagSet = ({ tagsJson, ...row }: Row<TagSetsTable>): TagSetRecord => ({
  ...row,
  tags: JSON.parse(tagsJson),
});

const setsOf = (organizationId: string) =>
  build.selectFrom('tag_sets').selectAll().where('organizationId', '=', organizationId);

/** What rules permit may change with it, so that it raises the organization's rule revision as the write of a rule does. */
export function insertTagSet(
  db: Database,
  organizationId: string,
  { id, target, tags }: NewTagSet,
  now: number,
): TagSetRecord {
  return db.transaction(() => {
    const row = { id, organizationId, target, tagsJson: JSON.stringify(tags), createdAt: now, updatedAt: now };
    db.run(build.insertInto('tag_sets').values(row));
    raiseRuleRevision(db, organizationId);
    return getTagSet(db, organizationId, id);
  });
}

/** The tags of this id, or a 404. */
export function getTagSet(db: Database, organizationId: string, id: string): TagSetRecord {
  const row = db.get(setsOf(organizationId).where('id', '=', id));
  if (row === undefined) throw notFound('There is no such tag set.');
  return toTagSet(row);
}

/** Newest first. */
export const listTagSets = (db: Database, organizationId: string, page: PageRequest): Page<TagSetRecord> =>
  mapPage(readPage(db, setsOf(organizationId), page), toTagSet);

/** All of them, at most 500 (src/admin/providers/tag-sets.ts). */
export const everyTagSet = (db: Database, organizationId: string): TagSetRecord[] =>
  db.all(setsOf(organizationId).orderBy('id')).map(toTagSet);

/** Puts other tags on the same target; 404 when there are none of this id. */
export function updateTagSet(
  db: Database,
  organizationId: string,
  id: string,
  tags: readonly string[],
  now: number,
): TagSetRecord {
  return db.transaction(() => {
    db.run(
      build
        .updateTable('tag_sets')
        .set({ tagsJson: JSON.stringify(tags), updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    raiseRuleRevision(db, organizationId);
    return getTagSet(db, organizationId, id);
  });
}

/** 404 when there are none of this id. */
export function deleteTagSet(db: Database, organizationId: string, id: string): void {
  db.transaction(() => {
    const deleted = db.run(
      build.deleteFrom('tag_sets').where('organizationId', '=', organizationId).where('id', '=', id),
    );
    if (deleted !== 1) throw notFound('There is no such tag set.');
    raiseRuleRevision(db, organizationId);
  });
}
