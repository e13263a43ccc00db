import { notFound, permissionDenied } from '../../domain/errors.ts';
import type { Role } from '../../store/db/tables.ts';
import type { MasterKeyCredential } from '../../store/tenants/master-key-records.ts';

/** Who administers: a master key, with the role that its maker has now, a signed-in member, or the person at this machine's command line. */
export type Actor =
  | ({ readonly kind: 'master_key' } & MasterKeyCredential)
  | { readonly kind: 'person'; readonly organizationId: string; readonly memberId: string; readonly role: Role }
  | { readonly kind: 'cli'; readonly organizationId: string };

const roleOf = (actor: Actor): Role => (actor.kind === 'cli' ? 'owner' : actor.role);

export const isDeveloper = (actor: Actor): boolean => roleOf(actor) === 'developer';

/** Developers see and manage their own keys only (src/admin/README.md, "roles"). */
export const seesAllKeys = (actor: Actor): boolean => !isDeveloper(actor);

export const seesKeyOf = (actor: Actor, owner: string): boolean =>
  seesAllKeys(actor) || (actor.kind !== 'cli' && actor.memberId === owner);

/** Owners manage everyone, admins everyone but owners, developers no one. */
export const managesRole = (manager: Role, member: Role): boolean =>
  manager === 'owner' || (manager === 'admin' && member !== 'owner');

/** Admins cannot change an owner's rules, developers nobody's. */
export const changesRulesOf = (actor: Actor, member: Role): boolean => managesRole(roleOf(actor), member);

/** 404, not 403: a developer must not even learn that another member's key exists. */
export function checkSeesKeyOf(actor: Actor, owner: string): void {
  if (!seesKeyOf(actor, owner)) throw notFound('There is no such key.');
}

export function checkMakesKeysFor(actor: Actor, member: string): void {
  if (!seesKeyOf(actor, member)) throw permissionDenied('Developers can only make keys for themselves.');
}

/** Throws 403 for developers: policy goes by the tags of keys. */
export function checkTagsKeys(actor: Actor): void {
  if (isDeveloper(actor)) throw permissionDenied('Developers cannot change the tags of keys.');
}

/** Throws 403 for developers: members, and the rules of members and of the organization, are none of their concern. */
export function checkManagesOrganization(actor: Actor): void {
  if (isDeveloper(actor)) throw permissionDenied('Developers can only manage their own keys.');
}

export function checkChangesRulesOf(actor: Actor, member: Role): void {
  if (!changesRulesOf(actor, member)) throw permissionDenied("An admin cannot change an owner's rules.");
}

/** Throws 403 when an admin would change or remove an owner, or revoke an owner's invitation. */
export function checkManagesRole(actor: Actor, member: Role): void {
  if (!managesRole(roleOf(actor), member)) throw permissionDenied('An admin cannot change an owner.');
}

/** Throws 403 when an admin would make an owner: of a member, or by inviting one. */
export function checkGivesRole(actor: Actor, role: Role): void {
  if (!managesRole(roleOf(actor), role)) throw permissionDenied('An admin cannot make anyone an owner.');
}

/** Everyone may end what acts for them; an admin cannot touch what acts for an owner. */
export function checkChangesMasterKeyOf(actor: Actor, member: { readonly id: string; readonly role: Role }): void {
  if (actor.kind !== 'cli' && actor.memberId === member.id) return;
  if (!managesRole(roleOf(actor), member.role)) throw permissionDenied("An admin cannot change an owner's master key.");
}

/** Throws 403 for all but owners. */
export function checkIsOwner(actor: Actor): void {
  if (roleOf(actor) !== 'owner') throw permissionDenied('Only an owner can change the organization.');
}
