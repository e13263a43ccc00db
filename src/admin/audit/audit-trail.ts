import { userInfo } from 'node:os';
import { plainText } from '../../lib/text.ts';
import { appendAuditEntry, type NewAuditEntry } from '../../store/audit/audit-entries.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from './actor.ts';

/** What management changes, and what it does to it. */
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

/** Of the installation, not of one organization. */
export type ServerTargetType = 'pepper' | 'encryption_key' | 'database' | 'policy_bundle';

/** What is done to a type of target. */
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
export type Change =
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

/** Who runs this process, by the operating system. */
function systemUser(): string {
  try {
    return plainText(userInfo().username);
  } catch {
    // A container may run as a user that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
