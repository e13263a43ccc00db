import { InvalidArgumentError } from 'commander';
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

/** The length of a recurring window: `1day`, `2 weeks`. */
export const parsePeriod = (text: string): Duration<PeriodUnit> => parse(text, PERIOD_UNITS, '1day');

const TTL_UNITS: readonly TtlUnit[] = ['minutes', 'hours', 'days'];

/** A time to live: `30minutes`, `7 days`, `1h`. (Of a window, `m` could be a minute or a month.) */
export const parseTtl = (text: string): Duration<TtlUnit> => parse(text, TTL_UNITS, '7days', (unit) => unit[0]);
