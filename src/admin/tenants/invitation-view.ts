import { formatTime } from '../../domain/time.ts';
import type { InvitationRecord, InvitationStatus } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type * as store from '../../store/tenants/member-records.ts';
import { findMember } from '../../store/tenants/member-records.ts';
import { optional } from '../audit/optional.ts';

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
