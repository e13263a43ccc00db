import { notFound } from '../../domain/errors.ts';
import type { Alias } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { AliasesTable, Row } from '../db/tables.ts';

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
