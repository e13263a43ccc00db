import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { retryAfterMs } from '../../../src/providers/wire/upstream-error.ts';

const clock = new ManualClock('2026-01-02T03:04:05.500Z');

describe('retryAfterMs', () => {
  it.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': '301' }, 300_000],
    [{ 'retry-after': '9'.repeat(400) }, 300_000],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'retry-after-ms': '0.2' }, 1],
    [{ 'retry-after-ms': 'soon', 'retry-after': '7' }, 7000],
    [{ 'retry-after': 'Fri, 02 Jan 2026 03:04:15 GMT' }, 9500],
    [{ 'retry-after': 'Fri, 02 Jan 2026 03:04:00 GMT' }, 0],
    [{ 'retry-after': 'Fri, 02 Jan 2099 03:04:00 GMT' }, 300_000],
  ])('reads %j', (headers, wanted) => expect(retryAfterMs(headers, clock)).toBe(wanted));

  it.each([
    {},
    { 'retry-after': 'soon' },
    { 'retry-after': '' },
    { 'retry-after': '-5' },
    { 'retry-after': ['1', '2'] },
  ])('reads nothing in %j', (headers) => expect(retryAfterMs(headers, clock)).toBeUndefined());
});
