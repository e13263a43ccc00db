import { describe, expect, it } from 'vitest';
import { NO_LIMITS, newLimits } from '../../../src/admin/keys/key-limits.ts';
import { PICO_PER_USD } from '../../../src/domain/limits.ts';

const present = {
  usageLimit: 25n * PICO_PER_USD,
  periodUsageLimit: 10n * PICO_PER_USD,
  periodUsageDurationValue: 1,
  periodUsageDurationUnit: 'day',
  periodUsageAlignment: null,
} as const;

const week = { periodUsageLimit: '0', periodUsageDurationValue: 2, periodUsageDurationUnit: 'week' } as const;

describe('the limits after a change', () => {
  it('are those that were there where nothing is said', () => {
    expect(newLimits({}, present)).toEqual({
      usageLimit: 25n * PICO_PER_USD,
      period: { limit: 10n * PICO_PER_USD, value: 1, unit: 'day' },
    });
    expect(newLimits({}, NO_LIMITS)).toEqual({ usageLimit: null, period: null });
  });

  it('are removed by null, the recurring amount with its window', () => {
    expect(newLimits({ usageLimit: null }, present)).toMatchObject({ usageLimit: null, period: { value: 1 } });
    expect(newLimits({ periodUsageLimit: null }, present)).toEqual({ usageLimit: 25n * PICO_PER_USD, period: null });
  });

  it('may change in the amount or the window alone', () => {
    expect(newLimits({ periodUsageLimit: '0.000000000001' }, present).period).toEqual({
      limit: 1n,
      value: 1,
      unit: 'day',
    });
    expect(newLimits({ periodUsageDurationUnit: 'month' }, present).period).toMatchObject({ value: 1, unit: 'month' });
    expect(newLimits(week, NO_LIMITS)).toEqual({ usageLimit: null, period: { limit: 0n, value: 2, unit: 'week' } });
  });

  it.each([
    [{ periodUsageLimit: '1' }, NO_LIMITS, '/periodUsageDurationValue'],
    [{ periodUsageLimit: '1', periodUsageDurationValue: 1 }, NO_LIMITS, '/periodUsageDurationUnit'],
    [{ periodUsageDurationUnit: 'day' }, NO_LIMITS, '/periodUsageLimit'],
    [{ periodUsageDurationValue: null }, present, '/periodUsageDurationValue'],
    [{ periodUsageLimit: null, periodUsageDurationValue: 2 }, present, '/periodUsageLimit'],
  ] as const)('come together or not at all: %j', (fields, before, param) => {
    const message =
      'periodUsageLimit, periodUsageDurationValue and periodUsageDurationUnit come together or not at all.';
    expect(() => newLimits(fields, before)).toThrow(expect.objectContaining({ status: 400, message, param }));
  });

  it.each([
    [{ usageLimit: '9000000.000000000001' }, '/usageLimit', 'An amount may be at most 9000000 USD.'],
    [{ ...week, periodUsageLimit: '9000001' }, '/periodUsageLimit', 'An amount may be at most 9000000 USD.'],
    [
      { ...week, periodUsageDurationValue: 53 },
      '/periodUsageDurationValue',
      'A window of unit week must be 1 to 52 long.',
    ],
    [
      { ...week, periodUsageDurationUnit: 'month', periodUsageDurationValue: 13 },
      '/periodUsageDurationValue',
      'A window of unit month must be 1 to 12 long.',
    ],
  ] as const)('are bounded: %j', (fields, param, message) => {
    expect(() => newLimits(fields, NO_LIMITS)).toThrow(expect.objectContaining({ status: 400, message, param }));
  });
});
