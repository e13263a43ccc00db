import { checkShape } from '../../domain/check-shape.ts';
import { newId } from '../../domain/id.ts';
import type { MemberAnswer } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import { type Actor, checkGivesRole, checkManagesOrganization } from '../audit/actor.ts';
import { recordChange } from '../audit/audit-trail.ts';
import { checkIsNew } from './invitations.ts';
import { newMember } from './new-member.ts';

const EXPLANATIONS = [
  { at: /^\/email$/, must: 'must be an e-mail address of at most 254 ASCII characters' },
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank, or null' },
];

/**
 * Makes someone a member at once, without an invitation. Shape, and an address that a present member or a pending invitation
 * has, 400. At the command line; in the master API members come by invitation.
 * @param body as `MemberCreate`, unchecked. @param now epoch ms
 */
export function addMember(db: Database, actor: Actor, body: unknown, now: number): MemberAnswer {
  const { email, role, name = null } = checkShape(validator('MemberCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    checkGivesRole(actor, role);
    checkIsNew(db, organizationId, email, now);
    const member = newMember(db, { id: newId('mem'), organizationId, email, name, role }, now);
    recordChange(db, actor, 'member', 'create', { before: null, after: member }, now);
    return { member };
  });
}
