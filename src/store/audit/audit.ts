import { sql } from 'kysely';
import { newId } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage, unknownCursor } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { AuditTable, Row } from '../db/tables.ts';
import { sealEntry } from './audit-chain.ts';

/** An entry as it stands in the chain; its JSON texts hold no secrets. */
export type AuditEntryRecord = Row<AuditTable>;

/** One management change. */
export type NewAuditEntry = Omit<AuditEntryRecord, 'seq' | 'id' | 'createdAt' | 'hmac'>;

/** Appends to the chain, in the caller's transaction. @throws Error when the database was opened without the audit key */
export function appendAuditEntry(db: Database, entry: NewAuditEntry, now: number): void {
  const { auditKey } = db;
  if (auditKey === undefined) throw new Error('The database was opened without the audit key: nothing can be audited.');
  db.transaction(() => {
    const last = db.get(build.selectFrom('audit').select(['seq', 'hmac']).orderBy('seq', 'desc').limit(1));
    const row = { ...entry, seq: (last?.seq ?? 0) + 1, id: newId('aud'), createdAt: now };
    db.run(build.insertInto('audit').values({ ...row, hmac: sealEntry(row, last?.hmac, auditKey) }));
  });
}

export interface AuditFilter {
  readonly action?: string | undefined;
  readonly targetId?: string | undefined;
  /** Epoch ms, inclusive. */
  readonly from?: number | undefined;
  /** Epoch ms, exclusive. */
  readonly to?: number | undefined;
}

/** What one page may hold of `before` and `after`, in bytes: an entry of a long rule has half a million. */
const MAX_PAGE_BYTES = 1_000_000;

/**
 * Entries of the organization, newest first. Every filter has an index, and a page ends early rather than be large, so that
 * the serving thread can read it.
 */
export function listAuditEntries(
  db: Database,
  organizationId: string,
  filter: AuditFilter,
  page: PageRequest,
): Page<AuditEntryRecord> {
  const rows = db.all(selectPlaces(db, organizationId, filter, page));
  let bytes = 0;
  const fitting = rows.findIndex((row) => {
    bytes += row.bytes;
    return bytes > MAX_PAGE_BYTES;
  });
  const { items, nextCursor } = toPage(rows, fitting === -1 ? page.limit : Math.min(page.limit, Math.max(fitting, 1)));
  return { items: items.map(({ seq }) => getEntry(db, organizationId, seq)), nextCursor };
}

/** The ids of a page and of one entry more, with the size of each. */
function selectPlaces(
  db: Database,
  organizationId: string,
  { action, targetId, from, to }: AuditFilter,
  { limit, cursor }: PageRequest,
) {
  let query = build
    .selectFrom('audit')
    .select(['id', 'seq'])
    .select(sql<number>`octet_length(coalesce(beforeJson, '')) + octet_length(coalesce(afterJson, ''))`.as('bytes'))
    .where('organizationId', '=', organizationId)
    .orderBy('createdAt', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1);
  if (action !== undefined) query = query.where('action', '=', action);
  if (targetId !== undefined) query = query.where('targetId', '=', targetId);
  if (from !== undefined) query = query.where('createdAt', '>=', from);
  if (to !== undefined) query = query.where('createdAt', '<', to);
  if (cursor === undefined) return query;
  const last = getPlace(db, organizationId, cursor);
  return query.where(({ eb, refTuple, tuple }) =>
    eb(refTuple('createdAt', 'seq'), '<', tuple(last.createdAt, last.seq)),
  );
}

function getEntry(db: Database, organizationId: string, seq: number): AuditEntryRecord {
  const entry = db.get(
    build.selectFrom('audit').selectAll().where('organizationId', '=', organizationId).where('seq', '=', seq),
  );
  if (entry === undefined) throw new Error(`There is no audit entry ${seq}.`);
  return entry;
}

/** Where the page before ended; ids alone do not say, because several processes make them. */
function getPlace(db: Database, organizationId: string, cursor: string): Pick<AuditTable, 'createdAt' | 'seq'> {
  const place = db.get(
    build
      .selectFrom('audit')
      .select(['createdAt', 'seq'])
      .where('organizationId', '=', organizationId)
      .where('id', '=', decodeCursor(cursor)),
  );
  if (place === undefined) throw unknownCursor();
  return place;
}

/** What a rule was called at a time (epoch ms), and which policy folder stated it, by the last entry about it until then; undefined: there is none. */
export function describedAt(
  db: Database,
  organizationId: string,
  ruleId: string,
  time: number,
): { readonly description: string | null; readonly managedByJson: string | null } | undefined {
  return db.get(
    build
      .selectFrom('audit')
      .select([
        sql<string | null>`coalesce(afterJson, beforeJson) ->> '$.description'`.as('description'),
        sql<string | null>`coalesce(afterJson, beforeJson) -> '$.managedBy'`.as('managedByJson'),
      ])
      .where('organizationId', '=', organizationId)
      .where('targetId', '=', ruleId)
      .where('createdAt', '<=', time)
      .orderBy('createdAt', 'desc')
      .orderBy('seq', 'desc')
      .limit(1),
  );
}
