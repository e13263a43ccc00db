import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type { Deletion, MemberAnswer, MemberList, MemberRecord } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import { addPlaygroundKeys } from '../../store/tenants/key-records.ts';
import * as store from '../../store/tenants/member-records.ts';
import {
  type Actor,
  checkGivesRole,
  checkManagesOrganization,
  checkManagesRole,
  recordChange,
} from '../audit/audit-trail.ts';
import { MINUTE_LIMIT_EXPLANATION } from '../keys/key-limits.ts';
import { endGrantsFrom } from '../keys/oauth-grants.ts';
import { checkIsNew, revokeInvitationsOf } from './invitations.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank, or null' },
  MINUTE_LIMIT_EXPLANATION,
  { at: /^\/email$/, must: 'cannot be changed: invite the new address and remove the member' },
];

/** A page of the organization's present members, newest first; 403 for developers. */
export function listMembers(db: Database, actor: Actor, page: PageRequest): MemberList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listMembers(db, actor.organizationId, page);
  return { members: items.map(viewMember), nextCursor };
}

/** A present member by membership id or e-mail; 404 when there is none, 403 for developers. */
export function getMember(db: Database, actor: Actor, idOrEmail: string): MemberAnswer {
  checkManagesOrganization(actor);
  return { member: viewMember(store.getMember(db, actor.organizationId, idOrEmail)) };
}

/**
 * Changes a member's name, role or limits a minute, from the next request on. Their pending invitations that the new role could not make are revoked.
 * Shape and demoting the last owner 400; developers, and admins where it is about owners, 403.
 * @param body as `MemberPatch`, unchecked. @param now epoch ms
 */
export function changeMember(db: Database, actor: Actor, idOrEmail: string, body: unknown, now: number): MemberAnswer {
  const patch = checkShape(validator('MemberPatch'), body, EXPLANATIONS);
  return db.transaction(() => {
    const before = managedMember(db, actor, idOrEmail);
    const { role = before.role } = patch;
    checkGivesRole(actor, role);
    if (role !== 'owner') checkLeavesOwner(db, before, 'demoted', '/role');
    const member = viewMember(store.updateMember(db, actor.organizationId, before.id, patch, now));
    recordChange(db, actor, 'member', 'update', { before: viewMember(before), after: member }, now);
    revokeInvitationsOf(db, actor, before.id, role, now);
    return { member };
  });
}

/**
 * Removes a member: their keys are disabled, their master keys and applications end, their pending invitations are revoked, and their
 * rules bind nothing any more. The last owner stays (400); developers, and admins where it is about owners, 403. @param now epoch ms
 */
export function removeMember(db: Database, actor: Actor, idOrEmail: string, now: number): Deletion {
  return db.transaction(() => {
    const member = managedMember(db, actor, idOrEmail);
    checkLeavesOwner(db, member, 'removed', null);
    store.removeMember(db, actor.organizationId, member.id, now);
    recordChange(db, actor, 'member', 'remove', { before: viewMember(member), after: null }, now);
    revokeInvitationsOf(db, actor, member.id, undefined, now);
    endGrantsFrom(db, actor, { memberId: member.id }, now);
    return { id: member.id, deleted: true };
  });
}

function managedMember(db: Database, actor: Actor, idOrEmail: string): store.MemberRecord {
  checkManagesOrganization(actor);
  const member = store.getMember(db, actor.organizationId, idOrEmail);
  checkManagesRole(actor, member.role);
  return member;
}

/** Someone must be able to manage the organization. */
function checkLeavesOwner(db: Database, member: store.MemberRecord, done: string, param: string | null): void {
  if (member.role !== 'owner' || store.countMembers(db, member.organizationId, 'owner') > 1) return;
  throw invalidRequest(`The last owner of an organization cannot be ${done}.`, param);
}

const NEW_MEMBER_EXPLANATIONS = [
  { at: /^\/email$/, must: 'must be an e-mail address of at most 254 ASCII characters' },
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank, or null' },
];

/**
 * Makes someone a member at once, without an invitation. Shape, and an address that a present member or a pending invitation
 * has, 400. At the command line; in the master API members come by invitation.
 * @param body as `MemberCreate`, unchecked. @param now epoch ms
 */
export function addMember(db: Database, actor: Actor, body: unknown, now: number): MemberAnswer {
  const { email, role, name = null } = checkShape(validator('MemberCreate'), body, NEW_MEMBER_EXPLANATIONS);
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

/** Stores a member without a password, with a playground key in every project. For a transaction of the caller's. @param now epoch ms */
export function newMember(db: Database, wanted: Omit<store.NewMember, 'passwordHash'>, now: number): MemberRecord {
  const member = store.insertMember(db, { ...wanted, passwordHash: null }, now);
  addPlaygroundKeys(db, wanted.organizationId, { memberId: member.id }, now);
  return viewMember(member);
}

/** A member as admin JSON shows them. */
export const viewMember = (member: store.MemberRecord): MemberRecord => ({
  id: member.id,
  createdAt: formatTime(member.createdAt),
  updatedAt: formatTime(member.updatedAt),
  email: member.email,
  name: member.name,
  role: member.role,
  requestsPerMinute: member.requestsPerMinute,
  tokensPerMinute: member.tokensPerMinute,
});
