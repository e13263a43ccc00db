import { keyState } from '../../domain/api-key.ts';
import { formatTime } from '../../domain/time.ts';
import type { KeyRecord } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type * as store from '../../store/tenants/key-records.ts';
import { findMember } from '../../store/tenants/member-records.ts';
import { optional } from '../audit/optional.ts';
import { viewLimits } from './limits-view.ts';

/**
 * A key as admin JSON shows it (src/admin/README.md, "record"), at `now` in epoch ms.
 * @param ownerEmail undefined when the member who owns it has left.
 */
export function viewKey(key: store.KeyRecord, ownerEmail: string | undefined, now: number): KeyRecord {
  const ownState = keyState(key, now);
  if (ownState === 'deleted') throw new Error('A deleted key is not shown.');
  // A key without an owner is refused (src/admin/README.md, "owner").
  const state = ownerEmail === undefined ? 'disabled' : ownState;
  return {
    id: key.id,
    createdAt: formatTime(key.createdAt),
    updatedAt: formatTime(key.updatedAt),
    description: key.description === '' ? null : key.description,
    projectId: key.projectId,
    createdBy: ownerEmail === undefined ? null : key.createdBy,
    createdByEmail: ownerEmail ?? null,
    kind: key.kind,
    status: key.status,
    state,
    // Nobody has a playground key's secret.
    maskedToken: key.kind === 'playground' ? null : key.mask,
    expiresAt: optional(key.expiresAt, formatTime),
    ...viewLimits(key, now),
    lastUsedAt: optional(key.lastUsedAt, formatTime),
    previousTokenEndsAt:
      key.previousSecretEndsAt !== null && key.previousSecretEndsAt > now ? formatTime(key.previousSecretEndsAt) : null,
    tags: JSON.parse(key.tagsJson),
    sharesLimitsOf: key.sharesLimitsOf,
    requestsPerMinute: key.requestsPerMinute,
    tokensPerMinute: key.tokensPerMinute,
  };
}

/** A key as admin JSON shows it; `now` in epoch ms. */
export const viewStoredKey = (db: Database, key: store.KeyRecord, now: number): KeyRecord =>
  viewKey(key, findMember(db, key.organizationId, key.createdBy)?.email, now);
