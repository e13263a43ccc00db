import { InvalidArgumentError } from 'commander';
import type { PeriodAlignment } from '../../domain/spend-limits.ts';
import type { PeriodUnit, TtlUnit } from '../../domain/time.ts';

export interface Duration<Unit extends string> {
  readonly value: number;
  readonly unit: Unit;
}

/** A whole number and a unit, in the singular or the plural, with or without a blank between. */
function parse<Unit extends string>(
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
  return { ...parse(text, PERIOD_UNITS, '1day or calendar-month'), alignment: null };
}

const TTL_UNITS: readonly TtlUnit[] = ['minutes', 'hours', 'days'];

/** A time to live: `30minutes`, `7 days`, `1h`. (Of a window, `m` could be a minute or a month.) */
export const parseTtl = (text: string): Duration<TtlUnit> => parse(text, TTL_UNITS, '7days', (unit) => unit[0]);
