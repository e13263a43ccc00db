import { notFound } from '../../domain/errors.ts';
import type { MinuteLimits } from '../../domain/limits.ts';
import type { Database } from '../db/database.ts';
import { countRows, insertSubject, type Page, type PageRequest, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { InvitationsTable, MembersTable, Role, Row, StoredSecret } from '../db/tables.ts';
import { deleteBudget } from './budget-records.ts';

const MEMBER_COLUMNS = [
  'id',
  'organizationId',
  'email',
  'name',
  'role',
  'requestsPerMinute',
  'tokensPerMinute',
  'createdAt',
  'updatedAt',
] as const;

export type MemberRecord = Row<MembersTable, (typeof MEMBER_COLUMNS)[number]>;

/** Without a `passwordHash` they cannot sign in with a password. */
export type NewMember = Row<MembersTable, 'id' | 'organizationId' | 'email' | 'name' | 'role' | 'passwordHash'>;

const presentMembers = (organizationId: string) =>
  build.selectFrom('members').where('organizationId', '=', organizationId).where('removedAt', 'is', null);

/** Stores a member and makes them a subject of rules. An e-mail that a present member has violates a constraint. */
export function insertMember(db: Database, member: NewMember, now: number): MemberRecord {
  return db.transaction(() => {
    const row = { ...member, email: member.email.toLowerCase(), createdAt: now, updatedAt: now };
    db.run(build.insertInto('members').values(row));
    insertSubject(db, member.organizationId, member.id, 'member');
    return getMember(db, member.organizationId, member.id);
  });
}

/** A present member by membership id or e-mail, or undefined. */
export function findMember(db: Database, organizationId: string, idOrEmail: string): MemberRecord | undefined {
  const column = idOrEmail.includes('@') ? 'email' : 'id';
  return db.get(
    presentMembers(organizationId)
      .select(MEMBER_COLUMNS)
      .where(column, '=', column === 'email' ? idOrEmail.toLowerCase() : idOrEmail),
  );
}

/** A present member by membership id or e-mail, or a 404. */
export function getMember(db: Database, organizationId: string, idOrEmail: string): MemberRecord {
  const member = findMember(db, organizationId, idOrEmail);
  if (member === undefined) throw notFound('There is no such member.');
  return member;
}

/** Present members, newest first. */
export const listMembers = (db: Database, organizationId: string, page: PageRequest): Page<MemberRecord> =>
  readPage(db, presentMembers(organizationId).select(MEMBER_COLUMNS), page);

export type MemberChanges = Partial<Pick<NewMember, 'name' | 'role' | 'passwordHash'> & MinuteLimits>;

/** Changes a present member; 404 when there is none. */
export function updateMember(
  db: Database,
  organizationId: string,
  id: string,
  changes: MemberChanges,
  now: number,
): MemberRecord {
  return db.transaction(() => {
    getMember(db, organizationId, id);
    db.run(
      build
        .updateTable('members')
        .set({ ...changes, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    return getMember(db, organizationId, id);
  });
}

/** A present member with a password. */
export interface PasswordHolder {
  readonly member: MemberRecord;
  readonly passwordHash: string;
}

/** Those who may sign in with this e-mail and a password, in all organizations, the oldest first. @param limit how many at most */
export const findPasswordHolders = (db: Database, email: string, limit: number): PasswordHolder[] =>
  db
    .all(
      build
        .selectFrom('members')
        .select([...MEMBER_COLUMNS, 'passwordHash'])
        .where('email', '=', email.toLowerCase())
        .where('removedAt', 'is', null)
        .where('passwordHash', 'is not', null)
        .orderBy('id')
        .limit(limit)
        .$narrowType<{ passwordHash: string }>(),
    )
    .map(({ passwordHash, ...member }) => ({ member, passwordHash }));

/** Null: the member has none. Undefined: there is no such member. */
export const findPasswordHash = (db: Database, organizationId: string, id: string): string | null | undefined =>
  db.get(presentMembers(organizationId).select('passwordHash').where('id', '=', id))?.passwordHash;

/** Counts the members who are present; those of one role when it is named. */
export const countMembers = (db: Database, organizationId: string, role?: Role): number =>
  countRows(
    db,
    role === undefined ? presentMembers(organizationId) : presentMembers(organizationId).where('role', '=', role),
  );

/**
 * Removes a member with their budget, sessions and passkeys, disables every key of theirs (src/admin/README.md, "owner") and
 * deletes their master keys, which nobody could use any more; 404 when there is none.
 */
export function removeMember(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    getMember(db, organizationId, id);
    deleteBudget(db, organizationId, id);
    db.run(
      build
        .updateTable('members')
        .set({ removedAt: now, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    db.run(
      build
        .updateTable('keys')
        .set({ status: 'inactive', disabledAt: now, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('createdBy', '=', id)
        .where('disabledAt', 'is', null),
    );
    db.run(
      build
        .updateTable('master_keys')
        .set({ deletedAt: now, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('memberId', '=', id)
        .where('deletedAt', 'is', null),
    );
    for (const table of ['sessions', 'sign_in_links', 'passkeys'] as const) {
      db.run(build.deleteFrom(table).where('organizationId', '=', organizationId).where('memberId', '=', id));
    }
  });
}

const INVITATION_COLUMNS = [
  'id',
  'organizationId',
  'email',
  'role',
  'invitedBy',
  'mask',
  'expiresAt',
  'acceptedAt',
  'memberId',
  'revokedAt',
  'createdAt',
  'updatedAt',
] as const;

export type InvitationRecord = Row<InvitationsTable, (typeof INVITATION_COLUMNS)[number]>;

export type NewInvitation = StoredSecret &
  Row<InvitationsTable, 'id' | 'organizationId' | 'email' | 'role' | 'invitedBy' | 'expiresAt'>;

const ofOrganization = (organizationId: string) =>
  build.selectFrom('invitations').where('organizationId', '=', organizationId);

export function insertInvitation(db: Database, invitation: NewInvitation, now: number): InvitationRecord {
  const row = { ...invitation, email: invitation.email.toLowerCase(), createdAt: now, updatedAt: now };
  db.run(build.insertInto('invitations').values(row));
  return getInvitation(db, invitation.organizationId, invitation.id);
}

/** The invitation, whatever has become of it, or a 404. */
export function getInvitation(db: Database, organizationId: string, id: string): InvitationRecord {
  const invitation = db.get(ofOrganization(organizationId).select(INVITATION_COLUMNS).where('id', '=', id));
  if (invitation === undefined) throw notFound('There is no such invitation.');
  return invitation;
}

/** Invitations, whatever has become of them, newest first. */
export const listInvitations = (db: Database, organizationId: string, page: PageRequest): Page<InvitationRecord> =>
  readPage(db, ofOrganization(organizationId).select(INVITATION_COLUMNS), page);

/** Those that can be accepted at `now`. */
const pending = (organizationId: string, now: number) =>
  ofOrganization(organizationId)
    .where('acceptedAt', 'is', null)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now);

export const hasPendingInvitation = (db: Database, organizationId: string, email: string, now: number): boolean =>
  db.get(pending(organizationId, now).select('id').where('email', '=', email.toLowerCase())) !== undefined;

export const countPendingInvitations = (db: Database, organizationId: string, now: number): number =>
  countRows(db, pending(organizationId, now));

/** The pending invitations that this member has made. */
export const pendingInvitationsOf = (
  db: Database,
  organizationId: string,
  memberId: string,
  now: number,
): InvitationRecord[] =>
  db.all(pending(organizationId, now).select(INVITATION_COLUMNS).where('invitedBy', '=', memberId));

/** The invitation with this token: the query that finds the organization, and so carries none. */
export const findInvitationByHash = (db: Database, secretHash: string): InvitationRecord | undefined =>
  db.get(build.selectFrom('invitations').select(INVITATION_COLUMNS).where('secretHash', '=', secretHash));

/** Closes an open invitation, once: it was accepted, and by which member; or it was revoked. 404 when it is not open any more. */
export function closeInvitation(
  db: Database,
  organizationId: string,
  id: string,
  end: { readonly memberId: string } | 'revoked',
  now: number,
): InvitationRecord {
  const closed = db.run(
    build
      .updateTable('invitations')
      .set(end === 'revoked' ? { revokedAt: now } : { acceptedAt: now, memberId: end.memberId })
      .set({ updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('acceptedAt', 'is', null)
      .where('revokedAt', 'is', null),
  );
  if (closed !== 1) throw notFound('There is no such open invitation.');
  return getInvitation(db, organizationId, id);
}
