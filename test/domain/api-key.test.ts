import { describe, expect, test } from 'vitest';
import {
  type ApiKey,
  checkRenamable,
  checkRollable,
  checkTakesRules,
  disable,
  enable,
  expire,
  keyState,
  reactivate,
  refusal,
  remove,
  setLimits,
} from '../../src/domain/api-key.ts';
import { ApiError } from '../../src/domain/errors.ts';
import { parseUsd, runningPeriod } from '../../src/domain/limits.ts';

const NOW = Date.UTC(2026, 2, 1, 12);
const HOUR = 3_600_000;

const fresh: ApiKey = {
  kind: 'regular',
  status: 'active',
  disabledAt: null,
  deletedAt: null,
  expiresAt: null,
  usageLimit: null,
  usage: 0n,
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
  currentPeriodUsage: 0n,
  currentPeriodStartedAt: null,
};

const hourly = { periodUsageLimit: 100n, periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' } as const;
const deleted = { deletedAt: NOW - 1 };
const disabled = { status: 'inactive', disabledAt: NOW - 1 } as const;
const expired = { expiresAt: NOW };
const spent = { usageLimit: 100n, usage: 100n };

/** What is thrown, as status, code and param. */
const refused = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error instanceof ApiError ? [error.status, error.code, error.param] : error;
  }
};

describe('the state of a key', () => {
  test.each<[string, Partial<ApiKey>, string]>([
    ['is new', {}, 'active'],
    ['has an expiration in the future', { expiresAt: NOW + 1 }, 'active'],
    ['expires at this very instant', expired, 'expired'],
    ['was marked inactive by the background job', { ...expired, status: 'inactive' }, 'expired'],
    ['is disabled', disabled, 'disabled'],
    ['is disabled and expired', { ...disabled, ...expired }, 'disabled'],
    ['is deleted, disabled, expired and spent', { ...deleted, ...disabled, ...expired, ...spent }, 'deleted'],
    ['is expired and spent', { ...expired, ...spent }, 'expired'],
    ['has spent its all-time limit', spent, 'limit_reached'],
    ['has spent one pico-dollar less than its limit', { usageLimit: 100n, usage: 99n }, 'active'],
    ['was limited below what is spent', { usageLimit: 50n, usage: 99n }, 'limit_reached'],
    ['has a limit of 0', { usageLimit: 0n }, 'limit_reached'],
    ['has a recurring limit and no window yet', hourly, 'active'],
    ['has a recurring limit of 0 and no window', { ...hourly, periodUsageLimit: 0n }, 'limit_reached'],
    [
      'has spent its recurring limit, a millisecond before the reset',
      { ...hourly, currentPeriodUsage: 100n, currentPeriodStartedAt: NOW - HOUR + 1 },
      'limit_reached',
    ],
    [
      'has spent its recurring limit, at the reset instant',
      { ...hourly, currentPeriodUsage: 100n, currentPeriodStartedAt: NOW - HOUR },
      'active',
    ],
    [
      'has spent nothing of its recurring but all of its all-time limit',
      { ...hourly, ...spent, currentPeriodStartedAt: NOW },
      'limit_reached',
    ],
  ])('that %s is derived', (_, columns, state) => {
    expect(keyState({ ...fresh, ...columns }, NOW)).toBe(state);
  });
});

describe('the refusal of a request', () => {
  const message = (columns: Partial<ApiKey>) => {
    const error = refusal({ ...fresh, ...columns }, NOW);
    return error && [error.status, error.type, error.code, error.message];
  };

  test.each<[string, Partial<ApiKey>, unknown]>([
    ['an active key', {}, undefined],
    [
      'a deleted key',
      { ...deleted, ...disabled },
      [401, 'invalid_request_error', 'invalid_api_key', 'The API key is not valid.'],
    ],
    ['a disabled key', disabled, [401, 'invalid_request_error', 'api_key_disabled', 'This API key is disabled.']],
    ['an expired key', expired, [401, 'invalid_request_error', 'api_key_expired', 'This API key has expired.']],
    [
      'a key that has spent its all-time limit',
      { usageLimit: parseUsd('2.5'), usage: parseUsd('2.5') },
      [
        401,
        'invalid_request_error',
        'usage_limit_reached',
        'This API key has reached its all-time usage limit of 2.5 USD.',
      ],
    ],
    [
      'a key that has spent its recurring limit',
      {
        ...hourly,
        periodUsageLimit: parseUsd('1'),
        currentPeriodUsage: parseUsd('1.2'),
        currentPeriodStartedAt: NOW - 60_000,
      },
      [
        401,
        'invalid_request_error',
        'usage_limit_reached',
        'This API key has reached its recurring usage limit of 1 USD. It resets at 2026-03-01T12:59:00.000Z.',
      ],
    ],
    [
      'a key with a recurring limit of 0',
      { ...hourly, periodUsageLimit: 0n },
      [
        401,
        'invalid_request_error',
        'usage_limit_reached',
        'This API key has reached its recurring usage limit of 0 USD. It does not reset: the limit must be raised.',
      ],
    ],
  ])('of %s', (_, columns, expected) => {
    expect(message(columns)).toEqual(expected);
  });
});

describe('transitions of the specification', () => {
  const stateAfter = (key: ApiKey, changes: Partial<ApiKey>, now = NOW): string =>
    keyState({ ...key, ...changes }, now);

  test('active, disable action: disabled', () => {
    const changes = disable(fresh, NOW);
    expect([changes, stateAfter(fresh, changes)]).toEqual([{ status: 'inactive', disabledAt: NOW }, 'disabled']);
  });

  test('disabled, disable action: nothing changes', () => {
    expect(disable({ ...fresh, ...disabled }, NOW)).toEqual({});
  });

  test.each([
    ['no TTL', null],
    ['a TTL in the future', NOW + 1],
  ])('disabled, enable action with %s: active', (_, expiresAt) => {
    const key = { ...fresh, ...disabled, expiresAt };
    const changes = enable(key, NOW);
    expect([changes, stateAfter(key, changes)]).toEqual([{ status: 'active', disabledAt: null }, 'active']);
  });

  test.each([
    ['disabled', { ...disabled, ...expired }],
    ['expired', expired],
  ])('%s, enable action with a TTL in the past: 400 at /status', (_, columns) => {
    expect(refused(() => enable({ ...fresh, ...columns }, NOW))).toEqual([400, 'invalid_request', '/status']);
  });

  test('active, TTL passes: expired, and the background job changes the status alone', () => {
    const key = { ...fresh, expiresAt: NOW + 1 };
    expect([keyState(key, NOW), expire(key, NOW)]).toEqual(['active', {}]);
    expect([keyState(key, NOW + 1), expire(key, NOW + 1)]).toEqual(['expired', { status: 'inactive' }]);
  });

  test.each([
    ['expired', expired],
    ['disabled and expired', { ...expired, ...disabled }],
  ])('%s, reactivate with a new future expiration: active', (_, columns) => {
    const key = { ...fresh, ...columns };
    const changes = reactivate(key, NOW + HOUR, NOW);
    expect([changes, stateAfter(key, changes)]).toEqual([
      { status: 'active', disabledAt: null, expiresAt: NOW + HOUR },
      'active',
    ]);
  });

  test('expired, reactivate with an expiration that is not in the future: 400', () => {
    expect(refused(() => reactivate({ ...fresh, ...expired }, NOW, NOW))).toEqual([
      400,
      'invalid_request',
      '/expiresAt',
    ]);
  });

  test.each([
    ['active', {}],
    ['disabled', disabled],
  ])('%s, reactivate: 400', (_, columns) => {
    expect(refused(() => reactivate({ ...fresh, ...columns }, NOW + 1, NOW))).toEqual([400, 'invalid_request', null]);
  });

  test('limit-reached, limit raised: active', () => {
    const key = { ...fresh, ...spent };
    expect(stateAfter(key, setLimits(key, { usageLimit: 101n, period: null }))).toBe('active');
  });

  test('limit-reached, limit removed: active', () => {
    const key = { ...fresh, ...hourly, currentPeriodUsage: 100n, currentPeriodStartedAt: NOW };
    expect(stateAfter(key, setLimits(key, { usageLimit: null, period: null }))).toBe('active');
  });

  test('limit-reached, next recurring window starts: active', () => {
    const key = { ...fresh, ...hourly, currentPeriodUsage: 100n, currentPeriodStartedAt: NOW };
    expect([keyState(key, NOW), keyState(key, NOW + HOUR)]).toEqual(['limit_reached', 'active']);
  });

  test('any, delete action: deleted', () => {
    for (const columns of [{}, disabled, expired, spent]) {
      const key = { ...fresh, ...columns };
      const changes = remove(key, NOW);
      expect([changes, stateAfter(key, changes)]).toEqual([{ status: 'inactive', deletedAt: NOW }, 'deleted']);
    }
  });

  test('a regular key may be rolled in every state but deleted', () => {
    const outcomes = [{}, disabled, expired, spent, deleted].map((columns) =>
      refused(() => checkRollable({ ...fresh, ...columns })),
    );
    expect(outcomes).toEqual([undefined, undefined, undefined, undefined, [404, 'not_found', null]]);
  });

  test('playground and platform keys cannot be rolled', () => {
    const outcomes = (['playground', 'platform_secret'] as const).map((kind) =>
      refused(() => checkRollable({ ...fresh, kind })),
    );
    expect(outcomes).toEqual([
      [403, 'permission_denied', null],
      [403, 'permission_denied', null],
    ]);
  });
});

describe('limits', () => {
  const running = { ...fresh, ...hourly, currentPeriodUsage: 40n, currentPeriodStartedAt: NOW };

  test('changing only the amount keeps the window', () => {
    expect(setLimits(running, { usageLimit: null, period: { limit: 30n, value: 1, unit: 'hour' } })).toEqual({
      usageLimit: null,
      periodUsageLimit: 30n,
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'hour',
      periodUsageAlignment: null,
    });
  });

  test('changing the length ends the running window', () => {
    expect(setLimits(running, { usageLimit: 5n, period: { limit: 100n, value: 2, unit: 'hour' } })).toEqual({
      usageLimit: 5n,
      periodUsageLimit: 100n,
      periodUsageDurationValue: 2,
      periodUsageDurationUnit: 'hour',
      periodUsageAlignment: null,
      currentPeriodUsage: 0n,
      currentPeriodStartedAt: null,
    });
  });

  test('the running window shows its reset', () => {
    expect([runningPeriod(running, NOW), runningPeriod(running, NOW + HOUR), runningPeriod(fresh, NOW)]).toEqual([
      { startedAt: NOW, resetAt: NOW + HOUR, usage: 40n },
      undefined,
      undefined,
    ]);
  });
});

const actions: [string, (key: ApiKey) => unknown][] = [
  ['disable', (key) => disable(key, NOW)],
  ['enable', (key) => enable(key, NOW)],
  ['reactivate', (key) => reactivate(key, NOW + 1, NOW)],
  ['remove', (key) => remove(key, NOW)],
  ['rename', (key) => checkRenamable(key)],
  ['give rules to', (key) => checkTakesRules(key)],
  ['limit', (key) => setLimits(key, { usageLimit: 1n, period: null })],
];

describe('keys that cannot be changed', () => {
  test.each(actions)('nobody can %s a playground key: 403', (_, action) => {
    expect(refused(() => action({ ...fresh, kind: 'playground' }))).toEqual([403, 'permission_denied', null]);
  });

  test.each(actions)('nobody can %s a deleted key: 404, whatever its kind', (_, action) => {
    for (const kind of ['regular', 'playground', 'platform_secret'] as const) {
      expect(refused(() => action({ ...fresh, ...deleted, kind }))).toEqual([404, 'not_found', null]);
    }
  });
});
