import { type SelectQueryBuilder, sql } from 'kysely';
import { type ApiError, invalidRequest } from '../../domain/errors.ts';
import type { Scope } from '../../generated/types.ts';
import type { Database } from './database.ts';
import { build } from './sql.ts';
import type { Tables } from './tables.ts';

/** A request for part of a list; lists are ordered newest first. */
export interface PageRequest {
  /** 1 to 200. */
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Null on the last page. */
  readonly nextCursor: string | null;
}

export const unknownCursor = (): ApiError => invalidRequest('The cursor does not belong to this list.', '/cursor');

/** The id after which a page begins; a cursor that we did not make is a 400. */
export function decodeCursor(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString('latin1');
  if (!/^[a-z]+_[0-9a-f]{32}$/.test(id)) throw unknownCursor();
  return id;
}

/** Makes a page of rows read with a limit one larger than the page's. */
export function toPage<T extends { readonly id: string }>(rows: readonly T[], limit: number): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextCursor: more ? Buffer.from(last.id, 'latin1').toString('base64url') : null };
}

/** Reads a page of what a query of one table selects, newest first. */
export function readPage<Table extends keyof Tables, Row extends { readonly id: string }>(
  db: Pick<Database, 'all'>,
  query: SelectQueryBuilder<Tables, Table, Row>,
  { limit, cursor }: PageRequest,
): Page<Row> {
  const id = sql.ref<string>('id');
  const rest = cursor === undefined ? query : query.where(id, '<', decodeCursor(cursor));
  return toPage(db.all(rest.orderBy(id, 'desc').limit(limit + 1)), limit);
}

export const mapPage = <Row, Item>({ items, nextCursor }: Page<Row>, toItem: (row: Row) => Item): Page<Item> => ({
  items: items.map(toItem),
  nextCursor,
});

/** Counts the rows of a query that selects nothing else. */
export const countRows = <Table extends keyof Tables>(
  db: Pick<Database, 'get'>,
  query: SelectQueryBuilder<Tables, Table, object>,
): number => db.get(query.select(sql<number>`count(*)`.as('count')))?.count ?? 0;

/** Text of a subject that has no rules: it lets everything through. */
const NO_RULES = '{"enforce":{}}';

/** Makes a key, member, group or organization known as a subject, with no rules. */
export function insertSubject(db: Database, organizationId: string, subjectId: string, scope: Scope): void {
  db.run(build.insertInto('subject_rules').values({ subjectId, organizationId, scope, compiledJson: NO_RULES }));
}

/** Raises the organization's rule revision, in the transaction of what it is raised for: running calls are judged again. */
export const raiseRuleRevision = (db: Database, organizationId: string): number =>
  db.get(
    build
      .updateTable('organizations')
      .set((row) => ({ ruleRevision: row('ruleRevision', '+', 1) }))
      .where('id', '=', organizationId)
      .returning('ruleRevision'),
  )?.ruleRevision ?? 0;
