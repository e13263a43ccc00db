import { type Command, InvalidArgumentError, Option } from 'commander';
import type { PeriodAlignment } from '../../domain/limits.ts';
import { calendarStart, formatTime, type PeriodUnit, type TtlUnit } from '../../domain/time.ts';
import { entryOf } from '../../lib/text.ts';
import { UsageError } from './usage-faults.ts';

export interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
  readonly wide?: true;
}

export const ORGANIZATION = 'the organization, where there are several';

/** The options of every command that works on one organization. */
export const common = (command: Command): Command =>
  command.option('--org <organization>', ORGANIZATION).option('--json', 'print JSON, as the master API answers it');

export const wide = (command: Command): Command => command.option('--wide', 'show all columns, and shorten nothing');

/** The options of a command that prints which access changes. */
export const showingAccess = (command: Command): Command =>
  command
    .option('--full', 'name everyone and everything, however much it is')
    .addOption(new Option('--markdown', 'print Markdown, for a comment on a pull request').conflicts('json'));

/** The options of a command that prints a list. */
export const listing = (command: Command): Command => wide(common(command));

/** A field that a command line sets to null by the word `none`. (Commander turns the null of a parser into an empty text.) */
export const orNone = <T>(value: T | 'none'): T | null => (value === 'none' ? null : value);

/** The fields that were named: those that are undefined are left out. */
export const named = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

export interface TimeOptions {
  readonly since?: number;
  readonly from?: string;
  readonly to?: string;
}

const SINCE_UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1h` in ms. */
function parseSince(text: string): number {
  const [, digits = '', unit = ''] = /^([1-9][0-9]{0,5})([smhd])$/.exec(text) ?? [];
  const length = entryOf(SINCE_UNITS, unit);
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

/** The beginning of the time range. @throws UsageError */
export function beginOf({ since, from }: TimeOptions, now: number): string | undefined {
  if (since !== undefined && from !== undefined) throw new UsageError('Choose --since or --from.');
  return since === undefined ? timeOf(from, now) : formatTime(Math.max(0, now - since));
}

const DAYS = { today: 'day', week: 'week', month: 'month' } as const;

const isDay = (text: string): text is keyof typeof DAYS => Object.hasOwn(DAYS, text);

/** `today`, `week` and `month` are the begin of this day, this week (Monday) and this month, in UTC; any other text stays. */
export const timeOf = (text: string | undefined, now: number): string | undefined =>
  text !== undefined && isDay(text) ? formatTime(calendarStart(now, DAYS[text])) : text;

export interface Duration<Unit extends string> {
  readonly value: number;
  readonly unit: Unit;
}

/** A whole number and a unit, in the singular or the plural, with or without a blank between. */
function parseDuration<Unit extends string>(
  text: string,
  units: readonly Unit[],
  example: string,
  short: (unit: Unit) => string | undefined = () => undefined,
): Duration<Unit> {
  const [, digits = '', word = ''] = /^([0-9]{1,6}) ?([a-z]+?)s?$/.exec(text) ?? [];
  const unit = units.find((known) => known.replace(/s$/, '') === word || short(known) === word);
  if (unit === undefined) {
    throw new InvalidArgumentError(`Write a whole number of ${units.join(', ')}, such as ${example}.`);
  }
  return { value: Number(digits), unit };
}

const PERIOD_UNITS: readonly PeriodUnit[] = ['hour', 'day', 'week', 'month'];

/** The length of a recurring window, and whether it follows the calendar. */
export interface Period extends Duration<PeriodUnit> {
  readonly alignment: PeriodAlignment | null;
}

/** The length of a recurring window: `1day`, `2 weeks`, `calendar-month`. */
export function parsePeriod(text: string): Period {
  const unit = PERIOD_UNITS.find((known) => text === `calendar-${known}`);
  if (unit !== undefined) return { value: 1, unit, alignment: 'calendar' };
  return { ...parseDuration(text, PERIOD_UNITS, '1day or calendar-month'), alignment: null };
}

const TTL_UNITS: readonly TtlUnit[] = ['minutes', 'hours', 'days'];

/** A time to live: `30minutes`, `7 days`, `1h`. (Of a window, `m` could be a minute or a month.) */
export const parseTtl = (text: string): Duration<TtlUnit> => parseDuration(text, TTL_UNITS, '7days', (unit) => unit[0]);

/** Parses a comma list of known words. @returns a parser for commander, which ends with exit code 2 */
export const wordList =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): Word[] =>
    text.split(',').map((item) => {
      const known = words.find((word) => word === item.trim());
      if (known === undefined) throw new InvalidArgumentError(`It must be a comma list of ${words.join(', ')}.`);
      return known;
    });

/** The option by which access is judged by this environment. */
export const againstOption = (): Option =>
  new Option(
    '--against <what>',
    "`env`: judge by this environment's providers; default: what the server's last start has recorded",
  ).choices(['env']);
