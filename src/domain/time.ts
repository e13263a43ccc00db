import { invalidRequest } from './errors.ts';

/** The one source of time. `now()` is whole milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that stands still until it is told otherwise. */
export class ManualClock implements Clock {
  #now: number;

  /** @param start epoch milliseconds, or RFC 3339 text. */
  constructor(start: number | string) {
    this.#now = new Date(start).getTime();
  }

  now(): number {
    return this.#now;
  }

  set(time: number | string): void {
    this.#now = new Date(time).getTime();
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** RFC 3339 in UTC with milliseconds: the only form in which our JSON holds times. */
export const formatTime = (epochMs: number): string => new Date(epochMs).toISOString();

const RFC_3339 = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$/;

/** Epoch ms of a time in RFC 3339, or of the begin of a day in UTC; anything else is a 400 at `param`. */
export function parseTime(text: string, param: string): number {
  const [, day = ''] = RFC_3339.exec(text) ?? [];
  const midnight = Date.parse(day);
  const time = Date.parse(text);
  // `Date.parse` makes 2 March of 30 February.
  if (Number.isNaN(midnight) || Number.isNaN(time) || !formatTime(midnight).startsWith(day)) {
    throw invalidRequest(`${param.slice(1)} must be a time such as 2026-01-31T12:00:00Z, or a day.`, param);
  }
  return time;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export type PeriodUnit = 'hour' | 'day' | 'week' | 'month';

/** The largest length of a recurring window, by unit; the smallest is one. */
export const MAX_PERIOD: Readonly<Record<PeriodUnit, number>> = { hour: 8760, day: 365, week: 52, month: 12 };

/** Throws a 400 unless the length of a window lies within the bounds of its unit. */
export function checkPeriod(value: number, unit: PeriodUnit, param: string | null = null): void {
  if (!Number.isInteger(value) || value < 1 || value > MAX_PERIOD[unit]) {
    throw invalidRequest(`A window of unit ${unit} must be 1 to ${MAX_PERIOD[unit]} long.`, param);
  }
}

/** `months` later at the same time of day in UTC; a day that the month lacks becomes its last. */
function addMonths(startMs: number, months: number): number {
  const end = new Date(startMs);
  const day = end.getUTCDate();
  end.setUTCDate(1);
  end.setUTCMonth(end.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() + 1, 0)).getUTCDate();
  end.setUTCDate(Math.min(day, lastDay));
  return end.getTime();
}

/**
 * The instant, in epoch milliseconds, at which a window that began at `startMs` ends; that instant is already outside it.
 * Hours are elapsed time; days, weeks and months are counted in UTC (decisions.md, section 3, "window").
 */
export function windowEnd(startMs: number, value: number, unit: PeriodUnit): number {
  switch (unit) {
    case 'hour':
      return startMs + value * HOUR;
    case 'day':
      return startMs + value * DAY;
    case 'week':
      return startMs + value * 7 * DAY;
    case 'month':
      return addMonths(startMs, value);
  }
}

export type TtlUnit = 'minutes' | 'hours' | 'days';

const TTL_MILLISECONDS: Readonly<Record<TtlUnit, number>> = { minutes: 60_000, hours: HOUR, days: DAY };

/** The longest time to live of a key, in days. */
export const MAX_TTL_DAYS = 3650;

/** When a key created at `now` with this time to live expires (epoch ms). A length outside 1 minute to 3650 days is a 400. */
export function ttlEnd(now: number, value: number, unit: TtlUnit, param: string | null = null): number {
  const length = value * TTL_MILLISECONDS[unit];
  if (!Number.isInteger(value) || value < 1 || length > MAX_TTL_DAYS * DAY) {
    throw invalidRequest(`A time to live must be at least 1 minute and at most ${MAX_TTL_DAYS} days.`, param);
  }
  return now + length;
}
