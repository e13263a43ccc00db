import { appendAuditEntry, type NewAuditEntry } from '../store/audit.ts';
import type { Database } from '../store/database.ts';
import type { Actor } from './actor.ts';

/** What management changes. */
export type AuditTargetType =
  | 'organization'
  | 'project'
  | 'member'
  | 'invitation'
  | 'master_key'
  | 'key'
  | 'rule'
  | 'provider_key'
  | 'custom_provider'
  | 'custom_model';

/** One of the server's own jobs, which acts for nobody. */
export interface Job {
  readonly kind: 'job';
  /** `expire_keys` */
  readonly name: string;
  readonly organizationId: string;
}

export interface AuditEntry {
  /** The kind of the target, a dot, and what was done to it: `key.create`. */
  readonly action: `${AuditTargetType}.${string}`;
  readonly target: { readonly type: AuditTargetType; readonly id: string };
  /** The target as admin JSON shows it, never with a secret; null before it was made. */
  readonly before: object | null;
  /** The same after the change; null when it is deleted. */
  readonly after: object | null;
}

/**
 * Notes a management change in the audit log (decisions.md, section 7, "audit"). To be called inside the transaction of the
 * change: there is neither without the other. @param now epoch ms
 */
export const recordAudit = (db: Database, actor: Actor | Job, entry: AuditEntry, now: number): void =>
  appendAuditEntry(
    db,
    {
      organizationId: actor.organizationId,
      ...authorOf(actor),
      action: entry.action,
      targetType: entry.target.type,
      targetId: entry.target.id,
      beforeJson: entry.before === null ? null : JSON.stringify(entry.before),
      afterJson: entry.after === null ? null : JSON.stringify(entry.after),
    },
    now,
  );

/** Something that admin JSON shows, before and after a change; never both null. */
export type Change =
  | { readonly before: null; readonly after: { readonly id: string } }
  | { readonly before: { readonly id: string }; readonly after: { readonly id: string } | null };

/** `recordAudit` of what has an id in its own record: `recordChange(db, actor, 'key', 'create', …)`. */
export function recordChange(
  db: Database,
  actor: Actor | Job,
  type: AuditTargetType,
  done: string,
  change: Change,
  now: number,
): void {
  const { id } = change.before ?? change.after;
  recordAudit(db, actor, { action: `${type}.${done}`, target: { type, id }, ...change }, now);
}

function authorOf(actor: Actor | Job): Pick<NewAuditEntry, 'actorKind' | 'actorId' | 'memberId'> {
  switch (actor.kind) {
    case 'master_key':
      return { actorKind: 'master_key', actorId: actor.masterKeyId, memberId: actor.memberId };
    case 'cli':
      return { actorKind: 'cli', actorId: null, memberId: null };
    case 'job':
      return { actorKind: 'job', actorId: actor.name, memberId: null };
  }
}
