import { type Selectable, sql } from 'kysely';
import { newId } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage, unknownCursor } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { AuditActorKind, AuditTable } from '../db/tables.ts';
import { sealEntry } from './audit-chain.ts';

/** One management change. */
export interface NewAuditEntry {
  readonly organizationId: string;
  readonly actorKind: AuditActorKind;
  /** The master key's id, the job's name, or the system user of the command line; null where the kind says it all. */
  readonly actorId: string | null;
  /** The person, or the maker of the master key. */
  readonly memberId: string | null;
  readonly action: string;
  readonly targetType: string;
  readonly targetId: string;
  /** JSON text without secrets; null: there was nothing. */
  readonly beforeJson: string | null;
  /** JSON text without secrets; null: there is nothing left. */
  readonly afterJson: string | null;
}

/** An entry as it stands in the chain; `createdAt` in epoch ms. */
export interface AuditEntryRecord extends NewAuditEntry {
  readonly seq: number;
  readonly id: string;
  readonly createdAt: number;
  readonly hmac: string;
}

const toEntry = (row: Selectable<AuditTable>): AuditEntryRecord => ({
  seq: row.seq,
  id: row.id,
  organizationId: row.organization_id,
  createdAt: row.created_at,
  actorKind: row.actor_kind,
  actorId: row.actor_id,
  memberId: row.member_id,
  action: row.action,
  targetType: row.target_type,
  targetId: row.target_id,
  beforeJson: row.before_json,
  afterJson: row.after_json,
  hmac: row.hmac,
});

/** Appends to the chain, in the caller's transaction. @throws Error when the database was opened without the audit key */
export function appendAuditEntry(db: Database, entry: NewAuditEntry, now: number): void {
  const { auditKey } = db;
  if (auditKey === undefined) throw new Error('The database was opened without the audit key: nothing can be audited.');
  db.transaction(() => {
    const last = db.get(build.selectFrom('audit').select(['seq', 'hmac']).orderBy('seq', 'desc').limit(1));
    const row = {
      seq: (last?.seq ?? 0) + 1,
      id: newId('aud'),
      organization_id: entry.organizationId,
      created_at: now,
      actor_kind: entry.actorKind,
      actor_id: entry.actorId,
      member_id: entry.memberId,
      action: entry.action,
      target_type: entry.targetType,
      target_id: entry.targetId,
      before_json: entry.beforeJson,
      after_json: entry.afterJson,
    };
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
    .select(sql<number>`octet_length(coalesce(before_json, '')) + octet_length(coalesce(after_json, ''))`.as('bytes'))
    .where('organization_id', '=', organizationId)
    .orderBy('created_at', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1);
  if (action !== undefined) query = query.where('action', '=', action);
  if (targetId !== undefined) query = query.where('target_id', '=', targetId);
  if (from !== undefined) query = query.where('created_at', '>=', from);
  if (to !== undefined) query = query.where('created_at', '<', to);
  if (cursor === undefined) return query;
  const last = getPlace(db, organizationId, cursor);
  return query.where(({ eb, refTuple, tuple }) =>
    eb(refTuple('created_at', 'seq'), '<', tuple(last.created_at, last.seq)),
  );
}

function getEntry(db: Database, organizationId: string, seq: number): AuditEntryRecord {
  const row = db.get(
    build.selectFrom('audit').selectAll().where('organization_id', '=', organizationId).where('seq', '=', seq),
  );
  if (row === undefined) throw new Error(`There is no audit entry ${seq}.`);
  return toEntry(row);
}

/** Where the page before ended; ids alone do not say, because several processes make them. */
function getPlace(db: Database, organizationId: string, cursor: string): Pick<AuditTable, 'created_at' | 'seq'> {
  const place = db.get(
    build
      .selectFrom('audit')
      .select(['created_at', 'seq'])
      .where('organization_id', '=', organizationId)
      .where('id', '=', decodeCursor(cursor)),
  );
  if (place === undefined) throw unknownCursor();
  return place;
}
