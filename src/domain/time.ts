import { invalidField, invalidRequest } from './errors.ts';

/** The one source of time. `now()` is whole milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that stands still until it is set. */
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

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** Input of `parseTime`, in words. */
export const TIME_FORM = 'must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z';

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Epoch ms of a date (its begin, UTC) or of an RFC 3339 time; anything else, and what lies before 1970, is a 400 at `param`. */
export function parseTime(text: string, param: string): number {
  const time = DATE.test(text) || TIME.test(text) ? Date.parse(text) : Number.NaN;
  const date = text.slice(0, 10);
  // The engine takes the 30th of February for the 2nd of March.
  const isInCalendar = new Date(`${date}T00:00:00Z`).toJSON()?.startsWith(date) === true;
  if (Number.isNaN(time) || !isInCalendar || time < 0) {
    throw invalidField(param, TIME_FORM, { quoted: JSON.stringify(text.slice(0, 100)) });
  }
  return time;
}

/** The end of a range of time, exclusive, as `parseTime` reads it; but the day of a date is part of the range. */
export const parseTimeEnd = (text: string, param: string): number =>
  parseTime(text, param) + (DATE.test(text) ? DAY : 0);

/** Throws a 400 unless a range of time begins before it ends. @param isNow whether no end was named, and now is it */
export function checkRange(from: number, to: number, isNow = false): void {
  if (from >= to) {
    throw invalidField('/from', ({ field }) => `must lie before ${isNow ? 'now, the default of ' : ''}${field('/to')}`);
  }
}

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
 * Hours are elapsed time; days, weeks and months are counted in UTC (src/domain/README.md, "time").
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

/** The instant at which the hour, day, week (from Monday on) or month of `epochMs` began, in UTC. */
export function calendarStart(epochMs: number, unit: PeriodUnit): number {
  if (unit === 'hour') return epochMs - (epochMs % HOUR);
  const day = epochMs - (epochMs % DAY);
  const date = new Date(day);
  if (unit === 'week') return day - ((date.getUTCDay() + 6) % 7) * DAY;
  return unit === 'day' ? day : Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

export type TtlUnit = 'minutes' | 'hours' | 'days';

const TTL_MILLISECONDS: Readonly<Record<TtlUnit, number>> = { minutes: 60_000, hours: HOUR, days: DAY };

/** The longest time to live of a key, in days. */
const MAX_TTL_DAYS = 3650;

/** When a key created at `now` with this time to live expires (epoch ms). A length outside 1 minute to 3650 days is a 400. */
export function ttlEnd(now: number, value: number, unit: TtlUnit, param: string | null = null): number {
  const length = value * TTL_MILLISECONDS[unit];
  if (!Number.isInteger(value) || value < 1 || length > MAX_TTL_DAYS * DAY) {
    throw invalidRequest(`A time to live must be at least 1 minute and at most ${MAX_TTL_DAYS} days.`, param);
  }
  return now + length;
}

/** Whether an RFC 3339 date has come; an absent one never does. @param now epoch milliseconds */
export const isPast = (date: string | undefined, now: number): boolean => date !== undefined && Date.parse(date) <= now;

/** The day on which the last of them is past; absent while one has none. */
export function lastDate(dates: readonly (string | undefined)[]): string | undefined {
  const stated = dates.filter((date) => date !== undefined);
  return stated.length < dates.length ? undefined : stated.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
}
