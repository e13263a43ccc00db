import { keyState, runningPeriod } from '../domain/api-key.ts';
import { formatUsd } from '../domain/money.ts';
import { formatTime } from '../domain/time.ts';
import type { KeyRecord } from '../generated/types.ts';
import type { Database } from '../store/database.ts';
import type * as store from '../store/keys.ts';
import { findMember } from '../store/members.ts';

const optional = <T, U>(value: T | null | undefined, show: (value: T) => U): U | null =>
  value === null || value === undefined ? null : show(value);

/**
 * A key as admin JSON shows it (decisions.md, section 3), at `now` in epoch ms.
 * @param ownerPresent false when the member who owns it has left.
 */
export function viewKey(key: store.KeyRecord, ownerPresent: boolean, now: number): KeyRecord {
  const period = runningPeriod(key, now);
  const ownState = keyState(key, now);
  if (ownState === 'deleted') throw new Error('A deleted key is not shown.');
  // A key without an owner is refused (decisions.md, section 3, "owner").
  const state = ownerPresent ? ownState : 'disabled';
  return {
    id: key.id,
    createdAt: formatTime(key.createdAt),
    updatedAt: formatTime(key.updatedAt),
    description: key.description === '' ? null : key.description,
    projectId: key.projectId,
    createdBy: ownerPresent ? key.createdBy : null,
    kind: key.kind,
    status: key.status,
    state,
    // Nobody has a playground key's secret.
    maskedToken: key.kind === 'playground' ? null : key.mask,
    expiresAt: optional(key.expiresAt, formatTime),
    usageLimit: optional(key.usageLimit, formatUsd),
    usage: formatUsd(key.usage),
    periodUsageLimit: optional(key.periodUsageLimit, formatUsd),
    periodUsageDurationValue: key.periodUsageDurationValue,
    periodUsageDurationUnit: key.periodUsageDurationUnit,
    currentPeriodUsage: optional(key.periodUsageLimit, () => formatUsd(period?.usage ?? 0n)),
    currentPeriodStartedAt: optional(period?.startedAt, formatTime),
    currentPeriodResetAt: optional(period?.resetAt, formatTime),
    lastUsedAt: optional(key.lastUsedAt, formatTime),
    previousTokenEndsAt:
      key.previousSecretEndsAt !== null && key.previousSecretEndsAt > now ? formatTime(key.previousSecretEndsAt) : null,
  };
}

/** A key as admin JSON shows it, whoever owns it; `now` in epoch ms. */
export const viewStoredKey = (db: Database, key: store.KeyRecord, now: number): KeyRecord =>
  viewKey(key, findMember(db, key.organizationId, key.createdBy) !== undefined, now);
