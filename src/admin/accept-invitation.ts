import { checkShape } from '../domain/check-shape.ts';
import { invalidRequest, notFound } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import { hashSecret, isWellFormedSecret, type Pepper } from '../domain/secret.ts';
import type { MemberAnswer } from '../generated/types.ts';
import { validateInvitationAccept } from '../generated/validators.js';
import type { Database } from '../store/database.ts';
import * as store from '../store/invitations.ts';
import { findMember, insertMember } from '../store/members.ts';
import { addPlaygroundKeys } from '../store/playground-keys.ts';
import { recordChange } from './audit-trail.ts';
import { statusOf, viewInvitation } from './invitation-view.ts';
import { viewMember } from './member-view.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank, or null' },
  { at: /^\/token$/, must: 'must be the token of an invitation' },
];

/** The token is a secret. */
const QUOTABLE = /^\/name$/;

/**
 * Makes whoever has the token of a pending invitation a member, once, with a playground key in every project; he has no
 * password yet. 404 for a token that is unknown, used or revoked, 400 when it has expired. At the command line.
 * @param body as `InvitationAccept`, unchecked. @param write `now` in epoch ms; accepted peppers, the current one first
 */
export function acceptInvitation(
  db: Database,
  body: unknown,
  { now, peppers }: { readonly now: number; readonly peppers: readonly Pepper[] },
): MemberAnswer {
  const { token, name = null } = checkShape(validateInvitationAccept, body, EXPLANATIONS, QUOTABLE);
  return db.transaction(() => {
    const invitation = openInvitation(db, token, peppers, now);
    const { organizationId, email, role } = invitation;
    if (findMember(db, organizationId, email) !== undefined) throw invalidRequest(`${email} is a member already.`);
    const id = newId('mem');
    const member = viewMember(insertMember(db, { id, organizationId, email, name, role, passwordHash: null }, now));
    addPlaygroundKeys(db, organizationId, { memberId: id }, now);
    const accepted = store.closeInvitation(db, organizationId, invitation.id, { memberId: id }, now);
    const actor = { kind: 'cli', organizationId } as const;
    recordChange(
      db,
      actor,
      'invitation',
      'accept',
      { before: viewInvitation(invitation, now), after: viewInvitation(accepted, now) },
      now,
    );
    recordChange(db, actor, 'member', 'create', { before: null, after: member }, now);
    return { member };
  });
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
