import { type Command, InvalidArgumentError, Option } from 'commander';
import type { MinuteLimits } from '../../domain/limits.ts';
import type { BudgetPatch, BudgetRecord } from '../../generated/types.ts';
import { orNone, type Period, parsePeriod } from './options.ts';
import { type Cell, timeText } from './output.ts';

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

export interface MinuteOptions {
  readonly rpm?: number | 'none';
  readonly tpm?: number | 'none';
}

function parseMinuteLimit(text: string): number | 'none' {
  if (text === 'none') return text;
  if (!/^[1-9][0-9]{0,9}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of at least 1, or "none".');
  return Number(text);
}

/** The options by which the limits a minute of a key, a member, a project or an organization are set. */
export const limitedByMinute = (command: Command): Command =>
  command
    .addOption(new Option('--rpm <n>', 'most calls a minute; "none" removes the limit').argParser(parseMinuteLimit))
    .addOption(new Option('--tpm <n>', 'most tokens a minute; "none" removes the limit').argParser(parseMinuteLimit));

/** The limits a minute that were named, as the fields of a request. */
export const minuteFields = ({ rpm, tpm }: MinuteOptions): Partial<MinuteLimits> => ({
  ...(rpm === undefined ? {} : { requestsPerMinute: orNone(rpm) }),
  ...(tpm === undefined ? {} : { tokensPerMinute: orNone(tpm) }),
});

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

/** The spending of the running window, and its reset: `0.5 until 2026-01-31 12:00:00Z`. */
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
