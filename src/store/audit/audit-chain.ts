import { createHmac } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { AuditTable, Row } from '../db/tables.ts';

/**
 * The `hmac` of an entry: HMAC-SHA-256, in hex, of the `hmac` of the entry before it (none: empty), a line break, and the
 * entry's other columns as one JSON array in the order of the table.
 */
export function sealEntry(entry: Omit<Row<AuditTable>, 'hmac'>, previous: string | undefined, key: Buffer): string {
  const columns = [
    entry.seq,
    entry.id,
    entry.organizationId,
    entry.createdAt,
    entry.actorKind,
    entry.actorId,
    entry.memberId,
    entry.action,
    entry.targetType,
    entry.targetId,
    entry.beforeJson,
    entry.afterJson,
  ];
  return createHmac('sha256', key)
    .update(`${previous ?? ''}\n${JSON.stringify(columns)}`)
    .digest('hex');
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
interface ChainHead {
  readonly seq: number;
  readonly hmac: string;
}

/** Where a chain does not hold: the place of the first entry that is missing, or is not what was written there. */
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
 * @param noted `hmac` of a head that was noted earlier. @param progress told after each chunk, in entries
 */
export function verifyAuditChain(
  db: Database,
  key: Buffer,
  noted: string | undefined,
  progress: (done: number, all: number) => void,
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
    }
    progress(done + rows.length, all);
  }
}
