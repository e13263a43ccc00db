import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { SessionsTable, SignInMethod } from '../db/tables.ts';

/** A session as it is stored. Times in epoch ms. */
export interface SessionRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly memberId: string;
  readonly method: SignInMethod;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

export interface NewSession extends Omit<SessionRecord, 'createdAt' | 'lastUsedAt'> {
  readonly secretHash: string;
}

const toSession = (row: Selectable<SessionsTable>): SessionRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  memberId: row.member_id,
  method: row.method,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at,
  expiresAt: row.expires_at,
});

export function insertSession(db: Database, session: NewSession, now: number): SessionRecord {
  const row = {
    id: session.id,
    organization_id: session.organizationId,
    member_id: session.memberId,
    secret_hash: session.secretHash,
    method: session.method,
    created_at: now,
    last_used_at: now,
    expires_at: session.expiresAt,
  };
  db.run(build.insertInto('sessions').values(row));
  return toSession(row);
}

/** The session with this cookie, ended or not: the query that finds the organization, and so carries none. */
export function findSessionByHash(db: Database, secretHash: string): SessionRecord | undefined {
  const row = db.get(build.selectFrom('sessions').selectAll().where('secret_hash', '=', secretHash));
  return row === undefined ? undefined : toSession(row);
}

/** All of a member's, newest first. */
export const sessionsOf = (db: Database, organizationId: string, memberId: string): SessionRecord[] =>
  db
    .all(
      build
        .selectFrom('sessions')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .where('member_id', '=', memberId)
        .orderBy('id', 'desc'),
    )
    .map(toSession);

export function touchSession(db: Database, organizationId: string, id: string, now: number): void {
  db.run(
    build
      .updateTable('sessions')
      .set({ last_used_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id),
  );
}

export function deleteSession(db: Database, organizationId: string, id: string): void {
  db.run(build.deleteFrom('sessions').where('organization_id', '=', organizationId).where('id', '=', id));
}

/** Deletes sessions of all organizations that have expired. @param limit how many at most */
export function deleteExpiredSessions(db: Database, now: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sessions')
      .where('id', 'in', build.selectFrom('sessions').select('id').where('expires_at', '<=', now).limit(limit)),
  );
}
