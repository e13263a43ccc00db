import { notFound } from '../../domain/errors.ts';
import type { Alias, TagSet } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { mapPage, type Page, type PageRequest, raiseRuleRevision, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { AliasesTable, Row, TagSetsTable } from '../db/tables.ts';

/** An alias as it is stored. */
export type AliasRecord = Alias & Pick<Row<AliasesTable>, 'organizationId' | 'updatedAt'>;

export type NewAlias = Omit<Alias, 'createdAt'>;
export type AliasContent = Pick<Alias, 'models' | 'weights'>;

export const toAlias = ({ modelsJson, weightsJson, ...row }: Row<AliasesTable>): AliasRecord => ({
  ...row,
  models: JSON.parse(modelsJson),
  weights: weightsJson === null ? null : JSON.parse(weightsJson),
});

const toColumns = ({ models, weights }: AliasContent) => ({
  modelsJson: JSON.stringify(models),
  weightsJson: weights === null ? null : JSON.stringify(weights),
});

const aliasesOf = (organizationId: string) =>
  build.selectFrom('aliases').selectAll().where('organizationId', '=', organizationId);

export function insertAlias(
  db: Database,
  organizationId: string,
  { id, projectId, name, ...content }: NewAlias,
  now: number,
): AliasRecord {
  const row = { id, organizationId, projectId, name, ...toColumns(content), createdAt: now, updatedAt: now };
  db.run(build.insertInto('aliases').values(row));
  return getAlias(db, organizationId, id);
}

/** The alias, or a 404 when it is missing or of another organization. */
export function getAlias(db: Database, organizationId: string, id: string): AliasRecord {
  const row = db.get(aliasesOf(organizationId).where('id', '=', id));
  if (row === undefined) throw notFound('There is no such alias.');
  return toAlias(row);
}

/** Newest first; only those of one project when it is named. */
export function listAliases(
  db: Database,
  organizationId: string,
  { projectId, ...page }: PageRequest & { readonly projectId?: string | undefined },
): Page<AliasRecord> {
  const query = aliasesOf(organizationId);
  const wanted = projectId === undefined ? query : query.where('projectId', '=', projectId);
  return mapPage(readPage(db, wanted, page), toAlias);
}

/** All of them, at most 200 (src/admin/providers/aliases.ts). */
export const everyAlias = (db: Database, organizationId: string): AliasRecord[] =>
  db.all(aliasesOf(organizationId).orderBy('id')).map(toAlias);

/** Gives an alias other models; 404 when there is none. */
export function updateAlias(
  db: Database,
  organizationId: string,
  id: string,
  content: AliasContent,
  now: number,
): AliasRecord {
  db.run(
    build
      .updateTable('aliases')
      .set({ ...toColumns(content), updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id),
  );
  return getAlias(db, organizationId, id);
}

/** 404 when there is none of this id. */
export function deleteAlias(db: Database, organizationId: string, id: string): void {
  const deleted = db.run(build.deleteFrom('aliases').where('organizationId', '=', organizationId).where('id', '=', id));
  if (deleted !== 1) throw notFound('There is no such alias.');
}

/** An organization's own tags of one target, as they are stored. */
export type TagSetRecord = TagSet & Omit<Row<TagSetsTable>, 'tagsJson'>;

export type NewTagSet = Pick<TagSetRecord, 'id' | 'target' | 'tags'>;

export const toTagSet = ({ tagsJson, ...row }: Row<TagSetsTable>): TagSetRecord => ({
  ...row,
  tags: JSON.parse(tagsJson),
});

const setsOf = (organizationId: string) =>
  build.selectFrom('tag_sets').selectAll().where('organizationId', '=', organizationId);

/** Stores a tag set. It may change what rules permit, so it raises the organization's rule revision as the write of a rule does. */
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

/** Names by which rules may mean an organization's own providers, models and tags. */
export interface CustomNames {
  /** Names of its custom providers, without `custom:`. */
  readonly providers: readonly string[];
  /** `<custom>/<model>` of its custom models, inactive ones too. */
  readonly models: readonly string[];
  /** Its own tags, whatever they are on. */
  readonly tags: readonly string[];
  /** Names of its aliases and those of its projects, which no rule means. */
  readonly aliases: readonly string[];
}

export function readCustomNames(db: Database, organizationId: string): CustomNames {
  const providers = build
    .selectFrom('custom_providers')
    .where('custom_providers.organizationId', '=', organizationId)
    .where('custom_providers.deletedAt', 'is', null);
  const models = providers
    .innerJoin('custom_models', 'custom_models.customProviderId', 'custom_providers.id')
    .where('custom_models.deletedAt', 'is', null);
  return {
    providers: db.all(providers.select('name')).map(({ name }) => name),
    models: db.all(models.select(['name', 'model'])).map(({ name, model }) => `${name}/${model}`),
    tags: everyTagSet(db, organizationId).flatMap(({ tags }) => tags),
    aliases: everyAlias(db, organizationId).map(({ name }) => name),
  };
}
