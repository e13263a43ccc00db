import type { Selectable } from 'kysely';
import { idsFrom } from '../../domain/id.ts';
import type { RefusedRequestsTable } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { type Page, type PageRequest, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';

/** A request that ended with an error before it was a call. */
export type RefusedRequest = Readonly<Selectable<RefusedRequestsTable>>;

/** Which are wanted; what is absent does not matter. */
export interface RefusedFilter {
  /** Null: those of no known key, which are no organization's. */
  readonly organizationId: string | null;
  readonly keyId?: string | undefined;
  /** The owner of the key. */
  readonly memberId?: string | undefined;
  readonly statusCode?: number | undefined;
  readonly errorCode?: string | undefined;
  /** Epoch ms, inclusive. */
  readonly from?: number | undefined;
  /** Epoch ms, exclusive. */
  readonly to?: number | undefined;
}

/** Rows at most, of all organizations: what comes beyond is only counted. */
const MOST_REFUSED = 100_000;

/** Keeps some, as many as there is room for. */
export function keepRefused(db: Database, requests: readonly RefusedRequest[]): void {
  const room = Math.max(0, MOST_REFUSED - countRefused(db));
  for (const request of requests.slice(0, room)) db.run(build.insertInto('refused_requests').values(request));
}

const countRefused = (db: Database): number =>
  db.get(build.selectFrom('refused_requests').select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0;

/** Deletes the oldest of those from before a time. @returns how many */
export function forgetRefused(db: Database, before: number, limit: number): number {
  const over = build
    .selectFrom('refused_requests')
    .select('id')
    .where('id', '<', idsFrom('req', before))
    .orderBy('id')
    .limit(limit);
  return db.run(build.deleteFrom('refused_requests').where('id', 'in', over));
}

const ofOrganization = (organizationId: string | null) =>
  build
    .selectFrom('refused_requests')
    .selectAll()
    .where('refused_requests.organizationId', organizationId === null ? 'is' : '=', organizationId);

/** A page, newest first. Not for the serving thread. */
export function listRefused(db: Database, filter: RefusedFilter, page: PageRequest): Page<RefusedRequest> {
  const { organizationId, keyId, memberId, statusCode, errorCode, from, to } = filter;
  let query = ofOrganization(organizationId);
  if (keyId !== undefined) query = query.where('keyId', '=', keyId);
  if (memberId !== undefined) query = query.where('memberId', '=', memberId);
  if (statusCode !== undefined) query = query.where('statusCode', '=', statusCode);
  if (errorCode !== undefined) query = query.where('errorCode', '=', errorCode);
  if (from !== undefined) query = query.where('id', '>=', idsFrom('req', from));
  if (to !== undefined) query = query.where('id', '<', idsFrom('req', to));
  return readPage(db, query, page);
}

/** The last one of an id: ours, or the caller's own. Not for the serving thread. */
export const findRefused = (db: Database, organizationId: string | null, id: string): RefusedRequest | undefined =>
  db.get(
    ofOrganization(organizationId)
      .where(id.startsWith('req_') ? 'id' : 'clientRequestId', '=', id)
      .orderBy('id', 'desc')
      .limit(1),
  );
