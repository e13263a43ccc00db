import { type Command, InvalidArgumentError, Option } from 'commander';
import { calendarStart, formatTime } from '../../domain/time.ts';
import { entryOf } from '../../lib/text.ts';
import { UsageError } from './usage-error.ts';

export interface TimeOptions {
  readonly since?: number;
  readonly from?: string;
  readonly to?: string;
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1h` in ms. */
function parseSince(text: string): number {
  const [, digits = '', unit = ''] = /^([1-9][0-9]{0,5})([smhd])$/.exec(text) ?? [];
  const length = entryOf(UNITS, unit);
  if (length === undefined) throw new InvalidArgumentError('Write a whole number and s, m, h or d, such as 1h.');
  return Number(digits) * length;
}

const TIME_FORMS = `
Times are UTC: a date, or an RFC 3339 time. As --to a date is included, a time is not.`;

/** The options of a command that works on a range of time. */
export const timeOptions = (command: Command): Command =>
  command
    .addOption(new Option('--since <length>', 'only of this long: 30m, 1h, 7d').argParser(parseSince))
    .option('--from <time>', 'not before this time or day, or today, week, month')
    .option('--to <time>', 'before this time, or to the end of this day')
    .addHelpText('after', TIME_FORMS);

/** Where the time begins. @throws UsageError */
export function beginOf({ since, from }: TimeOptions, now: number): string | undefined {
  if (since !== undefined && from !== undefined) throw new UsageError('Choose --since or --from.');
  return since === undefined ? timeOf(from, now) : formatTime(Math.max(0, now - since));
}

const DAYS = { today: 'day', week: 'week', month: 'month' } as const;

const isDay = (text: string): text is keyof typeof DAYS => Object.hasOwn(DAYS, text);

/** `today`, `week` and `month` are the begin of this day, this week (Monday) and this month, in UTC; any other text stays. */
export const timeOf = (text: string | undefined, now: number): string | undefined =>
  text !== undefined && isDay(text) ? formatTime(calendarStart(now, DAYS[text])) : text;
