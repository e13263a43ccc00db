import type { Selectable, Updateable } from 'kysely';
import type { SpendLimits, SpendState } from '../../domain/spend-limits.ts';
import type { SpendColumns } from '../db/tables.ts';

/** Spend limits as they are stored, of a key or a budget. */
export type SpendRow = Selectable<SpendColumns>;

export const toSpendState = (row: SpendRow): SpendState => ({
  usageLimit: row.usage_limit_pico,
  usage: row.usage_pico,
  reserved: row.reserved_pico,
  periodUsageLimit: row.period_limit_pico,
  periodUsageDurationValue: row.period_value,
  periodUsageDurationUnit: row.period_unit,
  currentPeriodUsage: row.period_usage_pico,
  currentPeriodReserved: row.period_reserved_pico,
  currentPeriodStartedAt: row.period_started_at,
});

/** The columns that new limits change. */
export function toSpendColumns(changes: Partial<SpendLimits>): Updateable<SpendColumns> {
  const row: Updateable<SpendColumns> = {};
  if (changes.usageLimit !== undefined) row.usage_limit_pico = changes.usageLimit;
  if (changes.periodUsageLimit !== undefined) row.period_limit_pico = changes.periodUsageLimit;
  if (changes.periodUsageDurationValue !== undefined) row.period_value = changes.periodUsageDurationValue;
  if (changes.periodUsageDurationUnit !== undefined) row.period_unit = changes.periodUsageDurationUnit;
  if (changes.currentPeriodStartedAt !== undefined) {
    // Another window: what open calls hold back in the old one does not count in it.
    row.period_started_at = changes.currentPeriodStartedAt;
    row.period_reserved_pico = 0n;
  }
  if (changes.currentPeriodUsage !== undefined) row.period_usage_pico = changes.currentPeriodUsage;
  return row;
}
