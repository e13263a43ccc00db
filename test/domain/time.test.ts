import { describe, expect, test } from 'vitest';
import {
  calendarStart,
  checkPeriod,
  formatTime,
  ManualClock,
  type PeriodUnit,
  systemClock,
  type TtlUnit,
  ttlEnd,
  windowEnd,
} from '../../src/domain/time.ts';

const at = (text: string): number => new Date(text).getTime();

describe('the end of a recurring window', () => {
  test.each<[string, number, PeriodUnit, string]>([
    ['2026-03-01T10:15:30.123Z', 1, 'hour', '2026-03-01T11:15:30.123Z'],
    ['2026-03-01T00:00:00.000Z', 8760, 'hour', '2027-03-01T00:00:00.000Z'],
    ['2026-03-28T12:00:00.000Z', 1, 'day', '2026-03-29T12:00:00.000Z'],
    ['2026-03-28T12:00:00.000Z', 52, 'week', '2027-03-27T12:00:00.000Z'],
    ['2026-01-31T23:59:59.999Z', 1, 'month', '2026-02-28T23:59:59.999Z'],
    ['2028-01-31T00:00:00.000Z', 1, 'month', '2028-02-29T00:00:00.000Z'],
    ['2026-01-31T00:00:00.000Z', 2, 'month', '2026-03-31T00:00:00.000Z'],
    ['2026-10-31T08:00:00.000Z', 1, 'month', '2026-11-30T08:00:00.000Z'],
    ['2026-12-15T08:00:00.000Z', 1, 'month', '2027-01-15T08:00:00.000Z'],
    ['2028-02-29T08:00:00.000Z', 12, 'month', '2029-02-28T08:00:00.000Z'],
  ])('from %s after %i %s is %s', (start, value, unit, end) => {
    expect(formatTime(windowEnd(at(start), value, unit))).toBe(end);
  });

  test.each<[PeriodUnit, number]>([
    ['hour', 8760],
    ['day', 365],
    ['week', 52],
    ['month', 12],
  ])('a window of unit %s is 1 to %i long', (unit, most) => {
    expect(() => checkPeriod(1, unit)).not.toThrow();
    expect(() => checkPeriod(most, unit)).not.toThrow();
    for (const value of [0, -1, 1.5, most + 1, Number.NaN]) {
      expect(() => checkPeriod(value, unit, '/periodUsageDurationValue')).toThrow(
        expect.objectContaining({ status: 400, code: 'invalid_request', param: '/periodUsageDurationValue' }),
      );
    }
  });
});

describe('a time to live', () => {
  test.each<[number, TtlUnit, string]>([
    [1, 'minutes', '2026-03-01T00:01:00.000Z'],
    [36, 'hours', '2026-03-02T12:00:00.000Z'],
    [3650, 'days', '2036-02-27T00:00:00.000Z'],
  ])('of %i %s ends at %s', (value, unit, end) => {
    expect(formatTime(ttlEnd(at('2026-03-01T00:00:00Z'), value, unit))).toBe(end);
  });

  test.each<[number, TtlUnit]>([
    [0, 'minutes'],
    [-5, 'days'],
    [0.5, 'hours'],
    [3651, 'days'],
    [1e300, 'minutes'],
  ])('of %d %s is refused', (value, unit) => {
    expect(() => ttlEnd(0, value, unit)).toThrow(expect.objectContaining({ status: 400, code: 'invalid_request' }));
  });
});

describe('clocks', () => {
  test('a manual clock stands still until it is set or moved on', () => {
    const clock = new ManualClock('2026-03-01T00:00:00Z');
    const readings = [clock.now(), clock.now()];
    clock.advance(1500);
    readings.push(clock.now());
    clock.set('2026-02-01T00:00:00Z');
    readings.push(clock.now());
    expect(readings.map(formatTime)).toEqual([
      '2026-03-01T00:00:00.000Z',
      '2026-03-01T00:00:00.000Z',
      '2026-03-01T00:00:01.500Z',
      '2026-02-01T00:00:00.000Z',
    ]);
  });

  test('the system clock gives whole milliseconds', () => {
    expect(Number.isInteger(systemClock.now())).toBe(true);
  });
});

describe('a window of the calendar', () => {
  test.each<[PeriodUnit, string, string]>([
    ['hour', '2026-03-01T12:34:56.789Z', '2026-03-01T12:00:00.000Z'],
    ['day', '2026-03-01T23:59:59.999Z', '2026-03-01T00:00:00.000Z'],
    ['week', '2026-03-01T12:00:00.000Z', '2026-02-23T00:00:00.000Z'],
    ['week', '2026-03-02T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    ['month', '2026-03-31T23:59:59.999Z', '2026-03-01T00:00:00.000Z'],
    ['month', '2028-02-29T00:00:00.000Z', '2028-02-01T00:00:00.000Z'],
    ['month', '2026-04-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z'],
  ])('begins with its %s: %s', (unit, time, start) => {
    expect(formatTime(calendarStart(Date.parse(time), unit))).toBe(start);
  });
});
