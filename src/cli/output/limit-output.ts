import type { MinuteLimits } from '../../domain/rate-limits.ts';
import type { BudgetRecord } from '../../generated/types.ts';
import { type Cell, timeText } from '../terminal/output.ts';

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

/** What was spent in the running window, and when it resets: `0.5 until 2026-01-31 12:00:00Z`. */
export function windowText(of: Pick<BudgetRecord, 'currentPeriodUsage' | 'currentPeriodResetAt'>): string {
  if (of.currentPeriodUsage === null) return '-';
  return of.currentPeriodResetAt === null
    ? of.currentPeriodUsage
    : `${of.currentPeriodUsage} until ${timeText(of.currentPeriodResetAt)}`;
}

/** A column for limits a minute, where one of the records has any. */
export function minuteColumn(records: readonly MinuteLimits[]) {
  const isShown = records.some((record) => minuteText(record) !== '-');
  return {
    titles: isShown ? ['PER MINUTE'] : [],
    cells: (record: MinuteLimits): Cell[] => (isShown ? [{ text: minuteText(record) }] : []),
  };
}

/** Both limits a minute in one cell: `60 calls, 100000 tokens`. */
const minuteText = ({ requestsPerMinute: calls, tokensPerMinute: tokens }: MinuteLimits): string =>
  [...(calls === null ? [] : [`${calls} calls`]), ...(tokens === null ? [] : [`${tokens} tokens`])].join(', ') || '-';
