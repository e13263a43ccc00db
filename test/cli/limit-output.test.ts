// Limits in one cell of a table (issue 12, 4 and 14).
import { expect, it } from 'vitest';
import { limitsText, windowText } from '../../src/cli/terminal/limit-options.ts';
import { timeOf } from '../../src/cli/terminal/options.ts';

it('a running window says what was spent in it and when it resets', () => {
  expect([
    windowText({ currentPeriodUsage: '0.5', currentPeriodResetAt: '2026-12-01T00:00:00.000Z' }),
    windowText({ currentPeriodUsage: '0', currentPeriodResetAt: null }),
    windowText({ currentPeriodUsage: null, currentPeriodResetAt: null }),
  ]).toEqual(['0.5 until 2026-12-01 00:00:00Z', '0', '-']);
});

it('both limits stand in one cell', () => {
  const period = {
    periodUsageLimit: '10',
    periodUsageDurationValue: 1,
    periodUsageDurationUnit: 'day',
    periodUsageAlignment: null,
  } as const;
  const none = {
    periodUsageLimit: null,
    periodUsageDurationValue: null,
    periodUsageDurationUnit: null,
    periodUsageAlignment: null,
  };
  const monthly = { ...period, periodUsageDurationUnit: 'month', periodUsageAlignment: 'calendar' } as const;
  expect([
    limitsText({ usageLimit: '25', ...period }),
    limitsText({ usageLimit: null, ...monthly }),
    limitsText({ usageLimit: null, ...none }),
  ]).toEqual(['25 in all, 10 per 1 day', '10 per calendar month', '-']);
});

it('today, week and month mean the begin of it, and any other time is left as it is', () => {
  const now = Date.parse('2026-03-05T12:34:56.789Z');
  expect(['today', 'week', 'month', '2026-01-31', undefined].map((text) => timeOf(text, now))).toEqual([
    '2026-03-05T00:00:00.000Z',
    '2026-03-02T00:00:00.000Z',
    '2026-03-01T00:00:00.000Z',
    '2026-01-31',
    undefined,
  ]);
});
