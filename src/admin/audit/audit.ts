import { invalidRequest } from '../../domain/errors.ts';
import { checkRange, formatTime, parseTime, parseTimeEnd } from '../../domain/time.ts';
import type { AuditList, AuditRecord } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import * as store from '../../store/audit/audit-entries.ts';
import type { AuditEntryRecord } from '../../store/db/audit-chain.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import { findNames } from '../../store/tenants/tenants.ts';
import { type Actor, AUDIT_ACTIONS, checkManagesOrganization } from './audit-trail.ts';

export interface AuditListRequest extends PageRequest {
  /** `key.create` */
  readonly action?: string | undefined;
  readonly targetId?: string | undefined;
  /** A date or an RFC 3339 time; inclusive. */
  readonly from?: string | undefined;
  /** A date, which is included, or an RFC 3339 time, which is not. */
  readonly to?: string | undefined;
}

/** A page of the organization's audit log, newest first; 403 for developers. */
export function listAudit(db: Database, actor: Actor, request: AuditListRequest): AuditList {
  const { action, targetId, ...page } = request;
  const from = page.from === undefined ? undefined : parseTime(page.from, '/from');
  const to = page.to === undefined ? undefined : parseTimeEnd(page.to, '/to');
  if (action !== undefined && !AUDIT_ACTIONS.includes(action)) {
    throw invalidRequest(`action must be one of ${AUDIT_ACTIONS.join(', ')}.`, '/action');
  }
  if (from !== undefined && to !== undefined) checkRange(from, to);
  checkManagesOrganization(actor);
  const filter = { action, targetId, from, to };
  const { items, nextCursor } = store.listAuditEntries(db, actor.organizationId, filter, page);
  const ids = items.flatMap(({ actorKind, actorId, memberId }) => [actorKind === 'cli' ? null : actorId, memberId]);
  const names = findNames(
    db,
    actor.organizationId,
    ids.filter((id) => id !== null),
  );
  return { entries: items.map((entry) => view(entry, names)), nextCursor };
}

type State = AuditRecord['before'];

const parsed = (json: string | null): State => (json === null ? null : JSON.parse(json));

/** The fields by one of which each kind of target is known to people. */
const NAME_FIELDS = ['name', 'email', 'description', 'label', 'displayName', 'target'];

/** The target's name after the change, or before its end. */
function targetName(state: State): string | null {
  for (const field of NAME_FIELDS) {
    const name = entryOf(state ?? {}, field);
    if (typeof name === 'string' && name !== '') return name;
  }
  return null;
}

/** @param names of master keys and members, by their ids */
function view(entry: AuditEntryRecord, names: ReadonlyMap<string, string>): AuditRecord {
  const { actorKind: kind, actorId, memberId } = entry;
  const [before, after] = [parsed(entry.beforeJson), parsed(entry.afterJson)];
  return {
    id: entry.id,
    seq: entry.seq,
    createdAt: formatTime(entry.createdAt),
    actor: {
      kind,
      id: actorId,
      name: actorId === null ? null : (names.get(actorId) ?? actorId),
      memberId,
      memberEmail: memberId === null ? null : (names.get(memberId) ?? null),
    },
    action: entry.action,
    target: { type: entry.targetType, id: entry.targetId, name: targetName(after ?? before) },
    before,
    after,
    hmac: entry.hmac,
  };
}
