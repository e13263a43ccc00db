import { createHmac } from 'node:crypto';
import type { Compilable } from 'kysely';
import { newId } from '../../domain/id.ts';
import { build } from './sql.ts';
import type { AuditTable, Row } from './tables.ts';

/** An entry as it stands in the chain; its JSON texts hold no secrets. */
export type AuditEntryRecord = Row<AuditTable>;

/** One management change. */
export type NewAuditEntry = Omit<AuditEntryRecord, 'seq' | 'id' | 'createdAt' | 'stateJson' | 'hmac'>;

/** The part of a database that the chain needs. */
interface Queries {
  get<R>(query: Compilable<R>): R | undefined;
  run(query: Compilable<unknown>): number;
}

/** Writes the next entry of the chain, inside a transaction. */
export function appendToChain(
  db: Queries,
  key: Buffer,
  entry: Omit<AuditEntryRecord, 'seq' | 'id' | 'createdAt' | 'hmac'>,
  now: number,
): void {
  const last = db.get(build.selectFrom('audit').select(['seq', 'hmac']).orderBy('seq', 'desc').limit(1));
  const row = { ...entry, seq: (last?.seq ?? 0) + 1, id: newId('aud'), createdAt: now };
  db.run(build.insertInto('audit').values({ ...row, hmac: sealEntry(row, last?.hmac, key) }));
}

/**
 * The `hmac` of an entry: HMAC-SHA-256, in hex, of the `hmac` of the entry before it (none: empty), a line break, and the
 * entry's other columns as one JSON array in the order of the table; `stateJson` only where it is not null.
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
    // A database of version 0.2.0 has no such column.
    ...(typeof entry.stateJson === 'string' ? [entry.stateJson] : []),
  ];
  return createHmac('sha256', key)
    .update(`${previous ?? ''}\n${JSON.stringify(columns)}`)
    .digest('hex');
}
