import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { Row, SessionsTable } from '../db/tables.ts';

const COLUMNS = ['id', 'organizationId', 'memberId', 'method', 'createdAt', 'lastUsedAt', 'expiresAt'] as const;

export type SessionRecord = Row<SessionsTable, (typeof COLUMNS)[number]>;

export type NewSession = Omit<Row<SessionsTable>, 'createdAt' | 'lastUsedAt'>;

export function insertSession(db: Database, session: NewSession, now: number): SessionRecord {
  const { secretHash, ...record } = { ...session, createdAt: now, lastUsedAt: now };
  db.run(build.insertInto('sessions').values({ ...record, secretHash }));
  return record;
}

/** The session with this cookie, ended or not: the query that finds the organization, and so carries none. */
export const findSessionByHash = (db: Database, secretHash: string): SessionRecord | undefined =>
  db.get(build.selectFrom('sessions').select(COLUMNS).where('secretHash', '=', secretHash));

/** All of a member's, newest first. */
export const sessionsOf = (db: Database, organizationId: string, memberId: string): SessionRecord[] =>
  db.all(
    build
      .selectFrom('sessions')
      .select(COLUMNS)
      .where('organizationId', '=', organizationId)
      .where('memberId', '=', memberId)
      .orderBy('id', 'desc'),
  );

export function touchSession(db: Database, organizationId: string, id: string, now: number): void {
  db.run(
    build
      .updateTable('sessions')
      .set({ lastUsedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id),
  );
}

export function deleteSession(db: Database, organizationId: string, id: string): void {
  db.run(build.deleteFrom('sessions').where('organizationId', '=', organizationId).where('id', '=', id));
}

/** Deletes sessions of all organizations that have expired. @param limit how many at most */
export function deleteExpiredSessions(db: Database, now: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sessions')
      .where('id', 'in', build.selectFrom('sessions').select('id').where('expiresAt', '<=', now).limit(limit)),
  );
}
