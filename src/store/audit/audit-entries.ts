import { sql } from 'kysely';
import { type AuditEntryRecord, appendToChain, type NewAuditEntry, sealEntry } from '../db/audit-chain.ts';
import type { Database } from '../db/database.ts';

import { decodeCursor, type Page, type PageRequest, toPage, unknownCursor } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { AuditTable } from '../db/tables.ts';

/** Appends to the chain, in the caller's transaction. @throws Error when the database was opened without the audit key */
export function appendAuditEntry(db: Database, entry: NewAuditEntry, now: number): void {
  const { auditKey } = db;
  if (auditKey === undefined) throw new Error('The database was opened without the audit key: nothing can be audited.');
  db.transaction(() => {
    const touched = db.stateWatch?.take() ?? [];
    const stateJson = touched.length === 0 ? null : JSON.stringify(touched);
    appendToChain(db, auditKey, { ...entry, stateJson }, now);
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

/** Most bytes of `before` and `after` on one page: an entry of a long rule has half a million. */
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

/** End of the previous page; ids alone do not determine it, because several processes make them. */
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

/**
 * Description of a rule at a time (epoch ms), and the policy folder that stated it, by the last entry about the rule up to
 * then; undefined: there is no such entry.
 */
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

/**
 * Whether the log was written under this key, by its first and its last entry: one of them may have been altered.
 * True for an empty log.
 */
export function isKeyOfChain(db: Pick<Database, 'all' | 'get'>, key: Buffer): boolean {
  const first = db.get(build.selectFrom('audit').selectAll().orderBy('seq').limit(1));
  if (first === undefined || first.hmac === sealEntry(first, undefined, key)) return true;
  const [last, previous] = db.all(build.selectFrom('audit').selectAll().orderBy('seq', 'desc').limit(2));
  return last !== undefined && last.hmac === sealEntry(last, previous?.hmac, key);
}

/** The last entry of a chain. Who notes it elsewhere will notice when entries at the end are taken away. */
export interface ChainHead {
  readonly seq: number;
  readonly hmac: string;
}

export const readChainHead = (db: Pick<Database, 'get'>): ChainHead | undefined =>
  db.get(build.selectFrom('audit').select(['seq', 'hmac']).orderBy('seq', 'desc').limit(1));

/** Whether the entry of an earlier head is still where it was. */
export const holdsHead = (db: Pick<Database, 'get'>, { seq, hmac }: ChainHead): boolean =>
  db.get(build.selectFrom('audit').select('hmac').where('seq', '=', seq))?.hmac === hmac;

/** Break in a chain: the place of the first entry that is missing or altered. */
interface ChainFault {
  readonly seq: number;
  readonly kind: 'missing' | 'altered';
}

export interface ChainVerdict {
  /** The last entry that was verified; undefined when there is none. */
  readonly head: ChainHead | undefined;
  /** Undefined: every entry is what was written, and none between the first and the last is missing. */
  readonly fault: ChainFault | undefined;
  /** Whether one of the verified entries has the `hmac` that was asked for. */
  readonly sawNoted: boolean;
}

const CHUNK = 1000;

/**
 * Walks the whole chain of this installation in chunks, up to the first fault. Reads every row: not for the serving thread.
 * @param noted `hmac` of an earlier head, to look for. @param progress called after each chunk with the entries verified and all of them
 * @param onEntry called for each verified entry
 */
export function verifyAuditChain(
  db: Database,
  key: Buffer,
  noted: string | undefined,
  progress: (done: number, all: number) => void,
  onEntry: (entry: AuditEntryRecord) => void = () => {},
): ChainVerdict {
  const all = db.get(build.selectFrom('audit').select('seq').orderBy('seq', 'desc').limit(1))?.seq ?? 0;
  let head: ChainHead | undefined;
  let sawNoted = false;
  for (;;) {
    const done = head?.seq ?? 0;
    const rows = db.all(build.selectFrom('audit').selectAll().where('seq', '>', done).orderBy('seq').limit(CHUNK));
    if (rows.length === 0) return { head, fault: undefined, sawNoted };
    for (const row of rows) {
      const seq: number = (head?.seq ?? 0) + 1;
      if (row.seq !== seq) return { head, fault: { seq, kind: 'missing' }, sawNoted };
      if (row.hmac !== sealEntry(row, head?.hmac, key)) return { head, fault: { seq, kind: 'altered' }, sawNoted };
      head = { seq, hmac: row.hmac };
      sawNoted ||= row.hmac === noted;
      onEntry(row);
    }
    progress(done + rows.length, all);
  }
}
