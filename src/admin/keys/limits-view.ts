import { calendarWindow, runningPeriod, type SpendLimits } from '../../domain/limits.ts';
import { formatUsd } from '../../domain/money.ts';
import { formatTime } from '../../domain/time.ts';
import type { BudgetRecord } from '../../generated/types.ts';
import { optional } from '../audit/optional.ts';

type LimitsView = Omit<BudgetRecord, 'id' | 'scope' | 'name' | 'state'>;

/** The limits of a key or a budget as admin JSON shows them, at `now` in epoch ms. */
export function viewLimits(limits: SpendLimits, now: number): LimitsView {
  const period = runningPeriod(limits, now);
  const shown = calendarWindow(limits, now) ?? period;
  return {
    usageLimit: optional(limits.usageLimit, formatUsd),
    usage: formatUsd(limits.usage),
    periodUsageLimit: optional(limits.periodUsageLimit, formatUsd),
    periodUsageDurationValue: limits.periodUsageDurationValue,
    periodUsageDurationUnit: limits.periodUsageDurationUnit,
    periodUsageAlignment: limits.periodUsageAlignment,
    currentPeriodUsage: optional(limits.periodUsageLimit, () => formatUsd(period?.usage ?? 0n)),
    currentPeriodStartedAt: optional(shown?.startedAt, formatTime),
    currentPeriodResetAt: optional(shown?.resetAt, formatTime),
  };
}
