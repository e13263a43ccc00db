import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest, notFound } from '../../domain/errors.ts';
import { hashSecret, isWellFormedSecret, newId, type Pepper } from '../../domain/id.ts';
import type { MemberAnswer } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/tenants/member-records.ts';
import { findMember } from '../../store/tenants/member-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { recordChange } from '../audit/audit-trail.ts';
import { statusOf, viewInvitation } from '../tenants/invitations.ts';
import { newMember } from '../tenants/members.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank, or null' },
  { at: /^\/token$/, must: 'must be the token of an invitation' },
];

/** The token is a secret. */
const QUOTABLE = /^\/name$/;

/** Inputs for accepting a token; `now` in epoch ms. */
interface Acceptance {
  readonly now: number;
  /** Accepted ones, the current one first. */
  readonly peppers: readonly Pepper[];
  /** The actor for the audit log: someone at the command line, or the new member. */
  readonly by: 'cli' | 'person';
}

/**
 * Makes the holder of a pending invitation's token a member, once, with a playground key in every project and no password. 404
 * for a token that is unknown, used or revoked, 400 when it has expired. The token alone entitles: it names the organization.
 * @param body as `InvitationAccept`, unchecked
 */
export function acceptInvitation(db: Database, body: unknown, { now, peppers, by }: Acceptance): MemberAnswer {
  const { token, name = null } = checkShape(validator('InvitationAccept'), body, EXPLANATIONS, QUOTABLE);
  return db.transaction(() => {
    const invitation = openInvitation(db, token, peppers, now);
    const { organizationId, email, role } = invitation;
    if (findMember(db, organizationId, email) !== undefined) throw invalidRequest(`${email} is a member already.`);
    const id = newId('mem');
    const actor = by === 'cli' ? { kind: by, organizationId } : { kind: by, organizationId, memberId: id };
    const member = newMember(db, { id, organizationId, email, name, role }, now);
    const accepted = store.closeInvitation(db, organizationId, invitation.id, { memberId: id }, now);
    recordChange(
      db,
      actor,
      'invitation',
      'accept',
      { before: viewInvitation(db, invitation, now), after: viewInvitation(db, accepted, now) },
      now,
    );
    recordChange(db, actor, 'member', 'create', { before: null, after: member }, now);
    return { member };
  });
}

/** The open invitation as its holder sees it; it stays open. @throws ApiError 404, 400 as above */
export function readOpenInvitation(
  db: Database,
  token: string,
  { now, peppers }: Omit<Acceptance, 'by'>,
): Pick<store.InvitationRecord, 'organizationId' | 'email' | 'role'> & { readonly organizationName: string } {
  const { organizationId, email, role } = openInvitation(db, token, peppers, now);
  return { organizationId, email, role, organizationName: getOrganization(db, organizationId).name };
}

function openInvitation(db: Database, token: string, peppers: readonly Pepper[], now: number): store.InvitationRecord {
  const hashes = isWellFormedSecret(token, 'invitation') ? peppers.map((pepper) => hashSecret(token, pepper)) : [];
  const [invitation] = hashes.flatMap((hash) => store.findInvitationByHash(db, hash) ?? []);
  const status = invitation === undefined ? undefined : statusOf(invitation, now);
  if (status === 'expired') throw invalidRequest('The invitation has expired: ask for a new one.');
  if (invitation === undefined || status !== 'pending') {
    throw notFound('There is no open invitation with this token.');
  }
  return invitation;
}
