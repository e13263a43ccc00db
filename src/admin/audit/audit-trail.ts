import { userInfo } from 'node:os';
import { notFound, permissionDenied } from '../../domain/errors.ts';
import { plainText } from '../../lib/text.ts';
import { appendAuditEntry } from '../../store/audit/audit-entries.ts';
import type { NewAuditEntry } from '../../store/db/audit-chain.ts';
import type { Database } from '../../store/db/database.ts';
import type { Role } from '../../store/db/tables.ts';
import type { MasterKeyCredential } from '../../store/tenants/master-key-records.ts';
import { listOrganizations } from '../../store/tenants/tenants.ts';

/**
 * The administrator: a master key with its maker's present role, a signed-in member, or the person at this machine's command
 * line.
 */
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

/** Targets that management changes, and its actions on each. */
const DONE = {
  organization: ['create', 'update'],
  project: ['create', 'update', 'delete'],
  member: ['create', 'update', 'remove', 'set_password', 'lock'],
  session: ['create', 'delete'],
  sign_in_link: ['create', 'use'],
  passkey: ['create', 'delete'],
  oauth_grant: ['create', 'update', 'delete'],
  invitation: ['create', 'accept', 'revoke'],
  master_key: ['create', 'update', 'delete'],
  key: ['create', 'update', 'disable', 'enable', 'reactivate', 'roll', 'expire', 'delete'],
  group: ['create', 'update', 'delete'],
  rule: ['create', 'update', 'delete'],
  policy: ['apply'],
  budget: ['update'],
  provider_key: ['create', 'update', 'delete'],
  custom_provider: ['create', 'update', 'delete'],
  custom_model: ['create', 'update', 'delete'],
  tag_set: ['create', 'update', 'delete'],
  alias: ['create', 'update', 'delete'],
  pepper: ['rotate', 'drop'],
  encryption_key: ['rotate'],
  database: ['restore'],
  policy_bundle: ['rollback'],
} as const;

export type AuditTargetType = keyof typeof DONE;

/** Targets of the installation, not of one organization. */
type ServerTargetType = 'pepper' | 'encryption_key' | 'database' | 'policy_bundle';

/** Actions on a type of target. */
export type Done<Type extends AuditTargetType> = (typeof DONE)[Type][number];

/** Every action of the audit log: `key.create`. */
export const AUDIT_ACTIONS: readonly string[] = Object.entries(DONE).flatMap(([type, all]) =>
  all.map((done) => `${type}.${done}`),
);

/** One of the server's own jobs, which acts for nobody. */
export interface Job {
  readonly kind: 'job';
  /** `expire_keys` */
  readonly name: string;
  readonly organizationId: string;
}

/** A member who acts themself: signed in, or by a one-time token that makes them a member or signs them in. */
export interface Person {
  readonly kind: 'person';
  readonly memberId: string;
  readonly organizationId: string;
}

/** Something as admin JSON shows it, never with a secret: null before it was made, and after it was deleted. */
type Change =
  | { readonly before: null; readonly after: { readonly id: string } }
  | { readonly before: { readonly id: string }; readonly after: { readonly id: string } }
  | { readonly before: { readonly id: string }; readonly after: null };

/**
 * Notes a management change in the audit log, as `<type>.<done>` (src/admin/README.md, "audit"). To be called inside the
 * transaction of the change: there is neither without the other.
 * @param now epoch ms
 */
export function recordChange<Type extends AuditTargetType>(
  db: Database,
  actor: Actor | Person | Job,
  type: Type,
  done: Done<Type>,
  { before, after }: Change,
  now: number,
): void {
  // Where one thing takes the place of another, such as a pepper, the target is the one in use afterwards.
  const targetId = after === null ? before.id : after.id;
  appendAuditEntry(
    db,
    {
      organizationId: actor.organizationId,
      ...authorOf(actor),
      action: `${type}.${done}`,
      targetType: type,
      targetId,
      beforeJson: before === null ? null : JSON.stringify(before),
      afterJson: after === null ? null : JSON.stringify(after),
    },
    now,
  );
}

function authorOf(actor: Actor | Person | Job): Pick<NewAuditEntry, 'actorKind' | 'actorId' | 'memberId'> {
  switch (actor.kind) {
    case 'master_key':
      return { actorKind: 'master_key', actorId: actor.masterKeyId, memberId: actor.memberId };
    case 'person':
      return { actorKind: 'person', actorId: actor.memberId, memberId: actor.memberId };
    case 'cli':
      return { actorKind: 'cli', actorId: systemUser(), memberId: null };
    case 'job':
      return { actorKind: 'job', actorId: actor.name, memberId: null };
  }
}

/** The operating system's user that runs this process. */
function systemUser(): string {
  try {
    return plainText(userInfo().username);
  } catch {
    // A container may run as a user that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/**
 * Notes what was done on the command line to the installation itself, in the audit log of every organization, since all of them
 * depend on it. @param now epoch ms
 */
export function recordServerChange<Type extends ServerTargetType>(
  db: Database,
  type: Type,
  done: Done<Type>,
  change: Change,
  now: number,
): void {
  db.transaction(() => {
    for (const { id } of listOrganizations(db)) {
      recordChange(db, { kind: 'cli', organizationId: id }, type, done, change, now);
    }
  });
}
