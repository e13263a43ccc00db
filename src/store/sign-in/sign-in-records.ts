import type { Database } from '../db/database.ts';
import { countRows } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { PasskeysTable, Row, SessionsTable, SignInFailuresTable, SignInLinksTable } from '../db/tables.ts';

const SESSION_COLUMNS = ['id', 'organizationId', 'memberId', 'method', 'createdAt', 'lastUsedAt', 'expiresAt'] as const;

export type SessionRecord = Row<SessionsTable, (typeof SESSION_COLUMNS)[number]>;

export type NewSession = Omit<Row<SessionsTable>, 'createdAt' | 'lastUsedAt'>;

export function insertSession(db: Database, session: NewSession, now: number): SessionRecord {
  const { secretHash, ...record } = { ...session, createdAt: now, lastUsedAt: now };
  db.run(build.insertInto('sessions').values({ ...record, secretHash }));
  return record;
}

/** The session with this cookie, ended or not: the query that finds the organization, and so carries none. */
export const findSessionByHash = (db: Database, secretHash: string): SessionRecord | undefined =>
  db.get(build.selectFrom('sessions').select(SESSION_COLUMNS).where('secretHash', '=', secretHash));

/** All of a member's, newest first. */
export const sessionsOf = (db: Database, organizationId: string, memberId: string): SessionRecord[] =>
  db.all(
    build
      .selectFrom('sessions')
      .select(SESSION_COLUMNS)
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

const LINK_COLUMNS = ['id', 'organizationId', 'memberId', 'createdAt', 'expiresAt', 'usedAt'] as const;

/** A link with which a member signs in once. */
export type SignInLinkRecord = Row<SignInLinksTable, (typeof LINK_COLUMNS)[number]>;

export type NewSignInLink = Omit<Row<SignInLinksTable>, 'createdAt' | 'usedAt'>;

export function insertSignInLink(db: Database, link: NewSignInLink, now: number): SignInLinkRecord {
  const { secretHash, ...record } = { ...link, createdAt: now, usedAt: null };
  db.run(build.insertInto('sign_in_links').values({ ...record, secretHash }));
  return record;
}

/** The link with this token, used and expired ones too: the query that finds the organization, and so carries none. */
export const findSignInLinkByHash = (db: Database, secretHash: string): SignInLinkRecord | undefined =>
  db.get(build.selectFrom('sign_in_links').select(LINK_COLUMNS).where('secretHash', '=', secretHash));

/** Uses a link up, once; undefined, and nothing is changed: it was used before. */
export function closeSignInLink(db: Database, link: SignInLinkRecord, now: number): SignInLinkRecord | undefined {
  const used = db.run(
    build
      .updateTable('sign_in_links')
      .set({ usedAt: now })
      .where('organizationId', '=', link.organizationId)
      .where('id', '=', link.id)
      .where('usedAt', 'is', null),
  );
  return used === 1 ? { ...link, usedAt: now } : undefined;
}

/** Deletes links of all organizations that expired before a time (epoch ms). @param limit how many at most */
export function deleteExpiredSignInLinks(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_links')
      .where('id', 'in', build.selectFrom('sign_in_links').select('id').where('expiresAt', '<', before).limit(limit)),
  );
}

/** Deletes the links of a member that were not used. */
export function deleteOpenSignInLinks(db: Database, organizationId: string, memberId: string): void {
  db.run(
    build
      .deleteFrom('sign_in_links')
      .where('organizationId', '=', organizationId)
      .where('memberId', '=', memberId)
      .where('usedAt', 'is', null),
  );
}

/** A WebAuthn credential of a member. */
export type PasskeyRecord = Omit<Row<PasskeysTable>, 'transportsJson'> & { readonly transports: readonly string[] };

export type NewPasskey = Omit<PasskeyRecord, 'createdAt' | 'lastUsedAt'>;

const toPasskey = ({ transportsJson, ...row }: Row<PasskeysTable>): PasskeyRecord => ({
  ...row,
  transports: JSON.parse(transportsJson),
});

/** A credential that is there already violates a constraint. */
export function insertPasskey(db: Database, passkey: NewPasskey, now: number): PasskeyRecord {
  const { transports, ...columns } = passkey;
  const row = { ...columns, transportsJson: JSON.stringify(transports), createdAt: now, lastUsedAt: null };
  db.run(build.insertInto('passkeys').values(row));
  return toPasskey(row);
}

/** By the id that an authenticator gave it, unguessable as a secret is: it finds the organization, and so carries none. */
export function findPasskeyByCredential(db: Database, credentialId: string): PasskeyRecord | undefined {
  const row = db.get(build.selectFrom('passkeys').selectAll().where('credentialId', '=', credentialId));
  return row === undefined ? undefined : toPasskey(row);
}

/** All of a member's, oldest first. */
export const passkeysOf = (db: Database, organizationId: string, memberId: string): PasskeyRecord[] =>
  db
    .all(
      build
        .selectFrom('passkeys')
        .selectAll()
        .where('organizationId', '=', organizationId)
        .where('memberId', '=', memberId)
        .orderBy('id'),
    )
    .map(toPasskey);

/** Notes that it was used. False, and nothing is noted, when the counter has changed from what was read. */
export const touchPasskey = (db: Database, passkey: PasskeyRecord, counter: number, now: number): boolean =>
  db.run(
    build
      .updateTable('passkeys')
      .set({ counter, lastUsedAt: now })
      .where('organizationId', '=', passkey.organizationId)
      .where('id', '=', passkey.id)
      .where('counter', '=', passkey.counter),
  ) === 1;

export function deletePasskey(db: Database, organizationId: string, id: string): void {
  db.run(build.deleteFrom('passkeys').where('organizationId', '=', organizationId).where('id', '=', id));
}

/** Attempts for one e-mail, by its hash. */
export type SignInFailures = Row<SignInFailuresTable>;

export const findSignInFailures = (db: Database, emailHash: string): SignInFailures | undefined =>
  db.get(build.selectFrom('sign_in_failures').selectAll().where('emailHash', '=', emailHash));

/** Stores the state of one e-mail, in the place of what there was. */
export function putSignInFailures(db: Database, state: SignInFailures): void {
  db.run(
    build
      .insertInto('sign_in_failures')
      .values(state)
      .onConflict((conflict) => conflict.column('emailHash').doUpdateSet(state)),
  );
}

export const countSignInFailures = (db: Database): number => countRows(db, build.selectFrom('sign_in_failures'));

/** Deletes the oldest ones. @param before epoch ms: only those whose window began before. @param limit how many at most */
export function deleteSignInFailures(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_failures')
      .where(
        'emailHash',
        'in',
        build
          .selectFrom('sign_in_failures')
          .select('emailHash')
          .where('windowStartedAt', '<', before)
          .orderBy('windowStartedAt')
          .limit(limit),
      ),
  );
}
