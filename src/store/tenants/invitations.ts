import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { countRows, type Page, type PageRequest, readPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { InvitationsTable, Row, StoredSecret } from '../db/tables.ts';

const COLUMNS = [
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

export type InvitationRecord = Row<InvitationsTable, (typeof COLUMNS)[number]>;

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
  const invitation = db.get(ofOrganization(organizationId).select(COLUMNS).where('id', '=', id));
  if (invitation === undefined) throw notFound('There is no such invitation.');
  return invitation;
}

/** Invitations, whatever has become of them, newest first. */
export const listInvitations = (db: Database, organizationId: string, page: PageRequest): Page<InvitationRecord> =>
  readPage(db, ofOrganization(organizationId).select(COLUMNS), page);

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
): InvitationRecord[] => db.all(pending(organizationId, now).select(COLUMNS).where('invitedBy', '=', memberId));

/** The invitation with this token: the query that finds the organization, and so carries none. */
export const findInvitationByHash = (db: Database, secretHash: string): InvitationRecord | undefined =>
  db.get(build.selectFrom('invitations').select(COLUMNS).where('secretHash', '=', secretHash));

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
