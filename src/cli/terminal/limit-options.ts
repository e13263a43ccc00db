import { type Command, Option } from 'commander';
import type { BudgetPatch } from '../../generated/types.ts';
import { type Period, parsePeriod } from './durations.ts';

export interface LimitOptions {
  readonly limit?: string;
  readonly periodLimit?: string;
  readonly period?: Period;
}

/** The options by which the limits of a key or a budget are set. */
export const limited = (command: Command): Command =>
  command
    .option('--limit <usd>', 'all-time spend cap, such as 25 or 0.5; "none" removes it')
    .option('--period-limit <usd>', 'recurring spend cap; "none" removes it')
    .addOption(
      new Option(
        '--period <length>',
        'window of the recurring cap: 1day, 12hours, 2weeks, 1month from a first call on, or calendar-month, calendar-week, calendar-day',
      ).argParser(parsePeriod),
    );

/** The length of a window, as the fields of a request. */
export const periodFields = ({ value, unit, alignment }: Period) => ({
  periodUsageDurationValue: value,
  periodUsageDurationUnit: unit,
  periodUsageAlignment: alignment,
});

/** The limits that were named, as the fields of a request. */
export const limitFields = ({ limit, periodLimit, period }: LimitOptions): BudgetPatch => ({
  ...(limit === undefined ? {} : { usageLimit: limit === 'none' ? null : limit }),
  ...(periodLimit === undefined ? {} : { periodUsageLimit: periodLimit === 'none' ? null : periodLimit }),
  ...(period === undefined ? {} : periodFields(period)),
});
