// Recurring windows against an independent calendar (luxon, in UTC), with the clock injected: leap years, month ends, the instants around an end.
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { type ApiKey, keyState } from '../../src/domain/api-key.ts';
import { runningPeriod } from '../../src/domain/limits.ts';
import { MAX_PERIOD, ManualClock, type PeriodUnit, windowEnd } from '../../src/domain/time.ts';

const HOUR = 3_600_000;
const UNITS = ['hour', 'day', 'week', 'month'] as const;
const RUNS = { numRuns: 5000 };

/** Any instant from 1970 to 2400, and often one at the end or the beginning of a month, of February above all. */
const instant = fc.oneof(
  fc.integer({ min: 0, max: Date.UTC(2400, 0, 1) }),
  fc
    .record({
      year: fc.integer({ min: 1970, max: 2400 }),
      month: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 11 })),
      day: fc.constantFrom(0, 1, 28, 29, 30, 31),
      time: fc.constantFrom(0, 1, 12 * HOUR, 24 * HOUR - 1),
    })
    .map(({ year, month, day, time }) => Math.max(0, Date.UTC(year, month, day) + time)),
);

const length = fc
  .constantFrom<PeriodUnit>(...UNITS)
  .chain((unit) => fc.record({ unit: fc.constant(unit), value: fc.integer({ min: 1, max: MAX_PERIOD[unit] }) }));

type Length = { readonly unit: PeriodUnit; readonly value: number };

/** By the calendar of luxon, in which hours are elapsed time and a day that a month lacks becomes its last. */
const end = (start: number, { unit, value }: Length): number =>
  DateTime.fromMillis(start, { zone: 'utc' })
    .plus({ [`${unit}s`]: value })
    .toMillis();

const keyWith = ({ unit, value }: Length, startedAt: number | null, spent: bigint): ApiKey => ({
  kind: 'regular',
  status: 'active',
  disabledAt: null,
  deletedAt: null,
  expiresAt: null,
  usageLimit: null,
  usage: spent,
  periodUsageLimit: 100n,
  periodUsageDurationValue: value,
  periodUsageDurationUnit: unit,
  periodUsageAlignment: null,
  currentPeriodUsage: spent,
  currentPeriodStartedAt: startedAt,
});

describe('the end of a window', () => {
  it('is that of an independent calendar, for every length and from every instant', () => {
    fc.assert(
      fc.property(instant, length, (start, wanted) => {
        expect(windowEnd(start, wanted.value, wanted.unit)).toBe(end(start, wanted));
      }),
      RUNS,
    );
  });

  it('of months keeps the time of day, and lies on the same day or on the last of a shorter month', () => {
    fc.assert(
      fc.property(instant, fc.integer({ min: 1, max: 12 }), (start, months) => {
        const [begun, ended] = [start, windowEnd(start, months, 'month')].map((at) =>
          DateTime.fromMillis(at, { zone: 'utc' }),
        );
        if (begun === undefined || ended === undefined) throw new Error('no dates');

        expect(ended.day).toBe(Math.min(begun.day, ended.daysInMonth ?? 0));
        expect((ended.year - begun.year) * 12 + ended.month - begun.month).toBe(months);
        expect(ended.toISOTime()).toBe(begun.toISOTime());
      }),
      RUNS,
    );
  });

  it('of hours, days and weeks is so much elapsed time', () => {
    fc.assert(
      fc.property(instant, length, (start, { unit, value }) => {
        fc.pre(unit !== 'month');
        const hours = { hour: 1, day: 24, week: 168, month: 0 }[unit];
        expect(windowEnd(start, value, unit) - start).toBe(value * hours * HOUR);
      }),
      RUNS,
    );
  });
});

describe('the running window', () => {
  it('runs from its first instant to the last before its end; at the end itself the key passes again', () => {
    fc.assert(
      fc.property(instant, length, fc.bigInt(0n, 200n), (start, wanted, spent) => {
        const key = keyWith(wanted, start, spent);
        const resetAt = end(start, wanted);
        const clock = new ManualClock(start);
        const running = { startedAt: start, resetAt, usage: spent };
        const state = spent >= 100n ? 'limit_reached' : 'active';

        for (const at of [start, start + 1, resetAt - 1]) {
          clock.set(at);
          expect([runningPeriod(key, clock.now()), keyState(key, clock.now())]).toEqual([running, state]);
        }
        for (const later of [0, 1, HOUR]) {
          clock.set(resetAt + later);
          expect([runningPeriod(key, clock.now()), keyState(key, clock.now())]).toEqual([undefined, 'active']);
        }
      }),
      RUNS,
    );
  });

  it('is none before the first call', () => {
    fc.assert(
      fc.property(instant, length, (now, wanted) => {
        expect(runningPeriod(keyWith(wanted, null, 0n), now)).toBeUndefined();
      }),
    );
  });
});
