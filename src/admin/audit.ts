import { invalidRequest } from '../domain/errors.ts';
import { formatTime, parseTime, parseTimeEnd } from '../domain/time.ts';
import type { AuditList, AuditRecord } from '../generated/types.ts';
import * as store from '../store/audit.ts';
import type { Database } from '../store/database.ts';
import type { PageRequest } from '../store/page.ts';
import { type Actor, checkManagesOrganization } from './actor.ts';
import { AUDIT_ACTIONS } from './audit-trail.ts';

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
  if (from !== undefined && to !== undefined && from >= to) throw invalidRequest('/from must lie before /to.', '/from');
  checkManagesOrganization(actor);
  const filter = { action, targetId, from, to };
  const { items, nextCursor } = store.listAuditEntries(db, actor.organizationId, filter, page);
  return { entries: items.map(view), nextCursor };
}

const parsed = (json: string | null): AuditRecord['before'] => (json === null ? null : JSON.parse(json));

const view = (entry: store.AuditEntryRecord): AuditRecord => ({
  id: entry.id,
  seq: entry.seq,
  createdAt: formatTime(entry.createdAt),
  actor: { kind: entry.actorKind, id: entry.actorId, memberId: entry.memberId },
  action: entry.action,
  target: { type: entry.targetType, id: entry.targetId },
  before: parsed(entry.beforeJson),
  after: parsed(entry.afterJson),
  hmac: entry.hmac,
});
