import { createHmac, randomBytes } from 'node:crypto';
import { hashSecret, newId, type Pepper } from '../../domain/id.ts';
import { DAY, formatTime, HOUR } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { SignInMethod } from '../../store/db/tables.ts';
import * as store from '../../store/sign-in/sign-in-records.ts';
import { findMember, type MemberRecord } from '../../store/tenants/member-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Person, recordChange } from '../audit/audit-trail.ts';
import type { SecretWrite } from '../keys/new-secret.ts';

/** A session ends when it was not used for so long. */
const IDLE_MS = 12 * HOUR;
/** And so long after it began, however much it is used. */
const ABSOLUTE_MS = 7 * DAY;
/** The oldest one ends when a member begins one more. */
const MAX_SESSIONS = 20;
/** Expired ones of any member that a sign-in deletes: more than it adds. */
const SWEPT = 50;

/** A session that has not ended, of a member who is present. */
interface FoundSession extends store.SessionRecord {
  readonly member: MemberRecord;
  readonly organizationName: string;
}

const hasEnded = ({ lastUsedAt, expiresAt }: store.SessionRecord, now: number): boolean =>
  expiresAt <= now || lastUsedAt + IDLE_MS <= now;

/** The session as the audit log shows it. */
const viewSession = (session: store.SessionRecord) => ({
  id: session.id,
  memberId: session.memberId,
  method: session.method,
  createdAt: formatTime(session.createdAt),
  expiresAt: formatTime(session.expiresAt),
});

/** The session with this cookie; undefined when there is none, it has ended, or its member has left. @param now epoch ms */
export function readSession(
  db: Database,
  secret: string,
  peppers: readonly Pepper[],
  now: number,
): FoundSession | undefined {
  if (!isSessionSecret(secret)) return undefined;
  const [session] = peppers.flatMap((pepper) => store.findSessionByHash(db, hashSecret(secret, pepper)) ?? []);
  if (session === undefined || hasEnded(session, now)) return undefined;
  const member = findMember(db, session.organizationId, session.memberId);
  if (member === undefined) return undefined;
  return { ...session, member, organizationName: getOrganization(db, session.organizationId).name };
}

/** The sessions of a member that have not ended, newest first. @param now epoch ms */
export const listSessions = (db: Database, { organizationId, id }: MemberRecord, now: number): store.SessionRecord[] =>
  store.sessionsOf(db, organizationId, id).filter((session) => !hasEnded(session, now));

/** Begins a session. @returns the value of its cookie, which is nowhere else */
export function startSession(
  db: Database,
  { organizationId, id: memberId }: Pick<MemberRecord, 'organizationId' | 'id'>,
  method: SignInMethod,
  { now, pepper }: SecretWrite,
): { readonly secret: string; readonly session: store.SessionRecord } {
  return db.transaction(() => {
    store.deleteExpiredSessions(db, now, SWEPT);
    const person: Person = { kind: 'person', organizationId, memberId };
    for (const { id } of store.sessionsOf(db, organizationId, memberId).slice(MAX_SESSIONS - 1)) {
      endSession(db, person, id, now);
    }
    const secret = newSessionSecret();
    const session = store.insertSession(
      db,
      {
        id: newId('sess'),
        organizationId,
        memberId,
        secretHash: hashSecret(secret, pepper),
        method,
        expiresAt: now + ABSOLUTE_MS,
      },
      now,
    );
    recordChange(db, person, 'session', 'create', { before: null, after: viewSession(session) }, now);
    return { secret, session };
  });
}

/** Ends one session of the person; nothing happens when they have no such session. @param now epoch ms */
export function endSession(db: Database, person: Person, sessionId: string, now: number): void {
  endSessions(db, person, ({ id }) => id === sessionId, now);
}

/** Ends the person's sessions but for one; all of them when none is named. @param now epoch ms */
export function endOtherSessions(db: Database, person: Person, keptId: string | undefined, now: number): void {
  endSessions(db, person, ({ id }) => id !== keptId, now);
}

function endSessions(
  db: Database,
  person: Person,
  isMeant: (session: store.SessionRecord) => boolean,
  now: number,
): void {
  db.transaction(() => {
    for (const session of store.sessionsOf(db, person.organizationId, person.memberId).filter(isMeant)) {
      store.deleteSession(db, person.organizationId, session.id);
      recordChange(db, person, 'session', 'delete', { before: viewSession(session), after: null }, now);
    }
  });
}

const BYTES = 32;
const LENGTH = Math.ceil((BYTES * 8) / 6);

/** The value of a cookie that nobody guesses: 256 random bits. */
export const newSessionSecret = (): string => randomBytes(BYTES).toString('base64url');

/** Whether a text has the form of one. */
export const isSessionSecret = (text: string): boolean => text.length === LENGTH && /^[\w-]+$/.test(text);

/** The token in the forms of a session: only the holder of the cookie's value can compute it, and it does not reveal that value. */
export const csrfTokenOf = (secret: string): string => createHmac('sha256', secret).update('csrf').digest('base64url');
