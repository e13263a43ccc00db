import type { BudgetRecord } from '../../generated/types.ts';

type Limits = Pick<
  BudgetRecord,
  'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit' | 'periodUsageAlignment'
>;

/** Both limits in one cell: `25 in all, 10 per 1 day`. */
export function limitsText(of: Limits): string {
  const total = of.usageLimit === null ? [] : [`${of.usageLimit} in all`];
  const length = of.periodUsageAlignment ?? of.periodUsageDurationValue;
  const period =
    of.periodUsageLimit === null ? [] : [`${of.periodUsageLimit} per ${length} ${of.periodUsageDurationUnit}`];
  return [...total, ...period].join(', ') || '-';
}

/** What was spent in the running window, and when it resets: `0.5 until 2026-01-31T12:00:00.000Z`. */
export function windowText(of: Pick<BudgetRecord, 'currentPeriodUsage' | 'currentPeriodResetAt'>): string {
  if (of.currentPeriodUsage === null) return '-';
  return of.currentPeriodResetAt === null
    ? of.currentPeriodUsage
    : `${of.currentPeriodUsage} until ${of.currentPeriodResetAt}`;
}
