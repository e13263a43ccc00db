import { formatTime } from '../domain/time.ts';
import type { InvitationRecord, InvitationStatus } from '../generated/types.ts';
import type * as store from '../store/invitations.ts';

/** What has become of an invitation at `now` (epoch ms). */
export function statusOf({ acceptedAt, revokedAt, expiresAt }: store.InvitationRecord, now: number): InvitationStatus {
  if (acceptedAt !== null) return 'accepted';
  if (revokedAt !== null) return 'revoked';
  return expiresAt <= now ? 'expired' : 'pending';
}

const optionalTime = (time: number | null): string | null => (time === null ? null : formatTime(time));

/** An invitation as admin JSON shows it at `now` (epoch ms). */
export const viewInvitation = (invitation: store.InvitationRecord, now: number): InvitationRecord => ({
  id: invitation.id,
  createdAt: formatTime(invitation.createdAt),
  updatedAt: formatTime(invitation.updatedAt),
  email: invitation.email,
  role: invitation.role,
  status: statusOf(invitation, now),
  invitedBy: invitation.invitedBy,
  expiresAt: formatTime(invitation.expiresAt),
  acceptedAt: optionalTime(invitation.acceptedAt),
  memberId: invitation.memberId,
  maskedToken: invitation.mask,
});
