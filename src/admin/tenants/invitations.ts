import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime, ttlEnd } from '../../domain/time.ts';
import type {
  Deletion,
  InvitationAnswer,
  InvitationCreate,
  InvitationList,
  InvitationRecord,
  InvitationStatus,
  InvitationTtl,
} from '../../generated/types.ts';
import { optional } from '../../lib/collections.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import type { Role } from '../../store/db/tables.ts';
import * as store from '../../store/tenants/member-records.ts';
import { countMembers, findMember } from '../../store/tenants/member-records.ts';
import {
  type Actor,
  checkGivesRole,
  checkManagesOrganization,
  checkManagesRole,
  managesRole,
  recordChange,
} from '../audit/audit-trail.ts';
import { newSecret, type SecretWrite } from '../keys/new-secret.ts';

const MAX_MEMBERS = 1000;
const MAX_TTL_DAYS = 30;
const DEFAULT_TTL: InvitationTtl = { value: 7, unit: 'days' };

const EXPLANATIONS = [
  { at: /^\/email$/, must: 'must be an e-mail address of at most 254 ASCII characters' },
  { at: /^\/ttl\/value$/, must: `must be a whole number from 1, and all together at most ${MAX_TTL_DAYS} days` },
];

/**
 * Invites a person by e-mail; the answer alone carries the token, with which they become a member once. Shape, and an address
 * that a present member or a pending invitation has, 400; developers, and admins who invite an owner, 403.
 * @param body as `InvitationCreate`, unchecked.
 */
export function createInvitation(
  db: Database,
  actor: Actor,
  body: unknown,
  { now, pepper }: SecretWrite,
): InvitationAnswer {
  const wanted = checkShape(validator('InvitationCreate'), body, EXPLANATIONS);
  const expiresAt = expiryOf(wanted, now);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    checkGivesRole(actor, wanted.role);
    checkIsNew(db, organizationId, wanted.email, now);
    const { token, ...secret } = newSecret('invitation', pepper);
    const record = store.insertInvitation(
      db,
      {
        id: newId('inv'),
        organizationId,
        email: wanted.email,
        role: wanted.role,
        invitedBy: actor.kind === 'cli' ? null : actor.memberId,
        ...secret,
        expiresAt,
      },
      now,
    );
    const invitation = viewInvitation(db, record, now);
    recordChange(db, actor, 'invitation', 'create', { before: null, after: invitation }, now);
    return { invitation: { ...invitation, token } };
  });
}

/** A page of the organization's invitations, whatever has become of them, newest first; 403 for developers. */
export function listInvitations(db: Database, actor: Actor, page: PageRequest, now: number): InvitationList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listInvitations(db, actor.organizationId, page);
  return { invitations: items.map((invitation) => viewInvitation(db, invitation, now)), nextCursor };
}

/** One invitation; 404 when there is none, 403 for developers. */
export function getInvitation(db: Database, actor: Actor, id: string, now: number): InvitationAnswer {
  checkManagesOrganization(actor);
  return { invitation: viewInvitation(db, store.getInvitation(db, actor.organizationId, id), now) };
}

/**
 * Revokes an invitation: its token is worth nothing any more; it stays in the list. One that was accepted is 400; revoking
 * twice changes nothing. Developers, and admins where an owner is invited, 403. @param now epoch ms
 */
export function revokeInvitation(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const invitation = store.getInvitation(db, actor.organizationId, id);
    checkManagesRole(actor, invitation.role);
    if (invitation.acceptedAt !== null) {
      throw invalidRequest('The invitation has been accepted: remove the member instead.');
    }
    if (invitation.revokedAt === null) revoke(db, actor, invitation, now);
    return { id, deleted: true };
  });
}

/**
 * Revokes the pending invitations of a member that they could not make with their role from now on; all of them when
 * they have left (undefined). No one joins by the word of a member who may not invite them.
 */
export function revokeInvitationsOf(
  db: Database,
  actor: Actor,
  memberId: string,
  role: Role | undefined,
  now: number,
): void {
  for (const invitation of store.pendingInvitationsOf(db, actor.organizationId, memberId, now)) {
    if (role === undefined || !managesRole(role, invitation.role)) revoke(db, actor, invitation, now);
  }
}

function revoke(db: Database, actor: Actor, invitation: store.InvitationRecord, now: number): void {
  const revoked = store.closeInvitation(db, actor.organizationId, invitation.id, 'revoked', now);
  recordChange(
    db,
    actor,
    'invitation',
    'revoke',
    { before: viewInvitation(db, invitation, now), after: viewInvitation(db, revoked, now) },
    now,
  );
}

/** @throws ApiError 400 for an address that has or may get a place already, and where there is no place left */
export function checkIsNew(db: Database, organizationId: string, email: string, now: number): void {
  if (findMember(db, organizationId, email) !== undefined) {
    throw invalidRequest(`${email} is a member already.`, '/email');
  }
  if (store.hasPendingInvitation(db, organizationId, email, now)) {
    throw invalidRequest(`${email} is invited already: revoke that invitation first.`, '/email');
  }
  const count = countMembers(db, organizationId) + store.countPendingInvitations(db, organizationId, now);
  if (count >= MAX_MEMBERS) {
    throw invalidRequest(`An organization has at most ${MAX_MEMBERS} members and pending invitations.`);
  }
}

function expiryOf({ ttl = DEFAULT_TTL }: InvitationCreate, now: number): number {
  const end = ttlEnd(now, ttl.value, ttl.unit, '/ttl/value');
  if (end <= ttlEnd(now, MAX_TTL_DAYS, 'days')) return end;
  throw invalidRequest(`An invitation can be accepted for at most ${MAX_TTL_DAYS} days.`, '/ttl/value');
}

/** The state of an invitation at `now` (epoch ms). */
export function statusOf({ acceptedAt, revokedAt, expiresAt }: store.InvitationRecord, now: number): InvitationStatus {
  if (acceptedAt !== null) return 'accepted';
  if (revokedAt !== null) return 'revoked';
  return expiresAt <= now ? 'expired' : 'pending';
}

/** An invitation as admin JSON shows it at `now` (epoch ms). */
export const viewInvitation = (db: Database, invitation: store.InvitationRecord, now: number): InvitationRecord => ({
  id: invitation.id,
  createdAt: formatTime(invitation.createdAt),
  updatedAt: formatTime(invitation.updatedAt),
  email: invitation.email,
  role: invitation.role,
  status: statusOf(invitation, now),
  invitedBy: invitation.invitedBy,
  invitedByEmail: optional(invitation.invitedBy, (id) => findMember(db, invitation.organizationId, id)?.email ?? null),
  expiresAt: formatTime(invitation.expiresAt),
  acceptedAt: optional(invitation.acceptedAt, formatTime),
  memberId: invitation.memberId,
  maskedToken: invitation.mask,
});
