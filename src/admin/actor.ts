import { notFound, permissionDenied } from '../domain/errors.ts';
import type { MasterKeyCredential } from '../store/master-keys.ts';
import type { Role } from '../store/tables.ts';

/** Who administers: a master key, with the role that its maker has now, or whoever runs the command line on this machine. */
export type Actor =
  | ({ readonly kind: 'master_key' } & MasterKeyCredential)
  | { readonly kind: 'cli'; readonly organizationId: string };

const roleOf = (actor: Actor): Role => (actor.kind === 'cli' ? 'owner' : actor.role);

/** Developers see and manage their own keys only (decisions.md, section 7, "roles"). */
export const seesAllKeys = (actor: Actor): boolean => roleOf(actor) !== 'developer';

export const seesKeyOf = (actor: Actor, owner: string): boolean =>
  seesAllKeys(actor) || (actor.kind === 'master_key' && actor.memberId === owner);

/** Owners manage everybody, admins everybody but owners, developers nobody. */
export const managesRole = (manager: Role, member: Role): boolean =>
  manager === 'owner' || (manager === 'admin' && member !== 'owner');

/** Admins cannot change an owner's rules, developers nobody's. */
export const changesRulesOf = (actor: Actor, member: Role): boolean => managesRole(roleOf(actor), member);

/** 404, not 403: of a key that is not his, a developer does not even learn that it exists. */
export function checkSeesKeyOf(actor: Actor, owner: string): void {
  if (!seesKeyOf(actor, owner)) throw notFound('There is no such key.');
}

export function checkMakesKeysFor(actor: Actor, member: string): void {
  if (!seesKeyOf(actor, member)) throw permissionDenied('A developer can make keys for himself only.');
}

/** Throws 403 for developers: members, and the rules of members and of the organization, are none of their concern. */
export function checkManagesOrganization(actor: Actor): void {
  if (roleOf(actor) === 'developer') throw permissionDenied('A developer can manage his own keys only.');
}

export function checkChangesRulesOf(actor: Actor, member: Role): void {
  if (!changesRulesOf(actor, member)) throw permissionDenied("An admin cannot change an owner's rules.");
}

/** Throws 403 when an admin would change or remove an owner, or revoke his invitation. */
export function checkManagesRole(actor: Actor, member: Role): void {
  if (!managesRole(roleOf(actor), member)) throw permissionDenied('An admin cannot change an owner.');
}

/** Throws 403 when an admin would make an owner: of a member, or by inviting one. */
export function checkGivesRole(actor: Actor, role: Role): void {
  if (!managesRole(roleOf(actor), role)) throw permissionDenied('An admin cannot make anybody an owner.');
}

/** Everybody may end what acts for him; an admin cannot touch what acts for an owner. */
export function checkChangesMasterKeyOf(actor: Actor, member: { readonly id: string; readonly role: Role }): void {
  if (actor.kind === 'master_key' && actor.memberId === member.id) return;
  if (!managesRole(roleOf(actor), member.role)) throw permissionDenied("An admin cannot change an owner's master key.");
}

/** Throws 403 for all but owners. */
export function checkIsOwner(actor: Actor): void {
  if (roleOf(actor) !== 'owner') throw permissionDenied('Only an owner can change the organization.');
}
