import type { Selectable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { InvitationsTable, Role } from '../db/tables.ts';
import type { StoredSecret } from './keys.ts';

/** An invitation as it is stored. Times in epoch ms. */
export interface InvitationRecord {
  readonly id: string;
  readonly organizationId: string;
  /** Lower case. */
  readonly email: string;
  readonly role: Role;
  /** Member in whose name it was made; null: the command line. */
  readonly invitedBy: string | null;
  readonly mask: string;
  readonly expiresAt: number;
  readonly acceptedAt: number | null;
  /** The member it became. */
  readonly memberId: string | null;
  readonly revokedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface NewInvitation extends StoredSecret {
  readonly id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly role: Role;
  readonly invitedBy: string | null;
  readonly expiresAt: number;
}

const toInvitation = (row: Selectable<InvitationsTable>): InvitationRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  email: row.email,
  role: row.role,
  invitedBy: row.invited_by,
  mask: row.mask,
  expiresAt: row.expires_at,
  acceptedAt: row.accepted_at,
  memberId: row.member_id,
  revokedAt: row.revoked_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export function insertInvitation(db: Database, invitation: NewInvitation, now: number): InvitationRecord {
  db.run(
    build.insertInto('invitations').values({
      id: invitation.id,
      organization_id: invitation.organizationId,
      email: invitation.email.toLowerCase(),
      role: invitation.role,
      invited_by: invitation.invitedBy,
      secret_hash: invitation.secretHash,
      pepper_id: invitation.pepperId,
      mask: invitation.mask,
      expires_at: invitation.expiresAt,
      created_at: now,
      updated_at: now,
    }),
  );
  return getInvitation(db, invitation.organizationId, invitation.id);
}

/** The invitation, whatever has become of it, or a 404. */
export function getInvitation(db: Database, organizationId: string, id: string): InvitationRecord {
  const row = db.get(
    build.selectFrom('invitations').selectAll().where('organization_id', '=', organizationId).where('id', '=', id),
  );
  if (row === undefined) throw notFound('There is no such invitation.');
  return toInvitation(row);
}

/** Invitations, whatever has become of them, newest first. */
export function listInvitations(db: Database, organizationId: string, page: PageRequest): Page<InvitationRecord> {
  let query = build
    .selectFrom('invitations')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toInvitation), page.limit);
}

/** Those that can be accepted at `now`. */
const pending = (organizationId: string, now: number) =>
  build
    .selectFrom('invitations')
    .where('organization_id', '=', organizationId)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now);

export const hasPendingInvitation = (db: Database, organizationId: string, email: string, now: number): boolean =>
  db.get(pending(organizationId, now).select('id').where('email', '=', email.toLowerCase())) !== undefined;

export const countPendingInvitations = (db: Database, organizationId: string, now: number): number =>
  db.get(pending(organizationId, now).select((row) => row.fn.countAll<number>().as('count')))?.count ?? 0;

/** The pending invitations that this member has made. */
export const pendingInvitationsOf = (
  db: Database,
  organizationId: string,
  memberId: string,
  now: number,
): InvitationRecord[] =>
  db.all(pending(organizationId, now).selectAll().where('invited_by', '=', memberId)).map(toInvitation);

/** The invitation with this token: the query that finds the organization, and so carries none. */
export function findInvitationByHash(db: Database, secretHash: string): InvitationRecord | undefined {
  const row = db.get(build.selectFrom('invitations').selectAll().where('secret_hash', '=', secretHash));
  return row === undefined ? undefined : toInvitation(row);
}

/** Notes that the invitation was accepted, and by which member; or that it was revoked. */
export function closeInvitation(
  db: Database,
  organizationId: string,
  id: string,
  end: { readonly memberId: string } | 'revoked',
  now: number,
): InvitationRecord {
  db.run(
    build
      .updateTable('invitations')
      .set(end === 'revoked' ? { revoked_at: now } : { accepted_at: now, member_id: end.memberId })
      .set({ updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id),
  );
  return getInvitation(db, organizationId, id);
}
