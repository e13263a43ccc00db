import { beforeEach, expect, it } from 'vitest';
import { createTakeRate, type Rate, rateLimitExceeded } from '../../../src/core/access/rate-limit.ts';

const OFF = {
  chat: undefined,
  images: undefined,
  models: undefined,
  moderations: undefined,
  mcp: undefined,
  management: undefined,
};

let now: number;
const clock = (): number => now;
beforeEach(() => {
  now = 0;
});

const passed = (rate: Rate | undefined): [boolean, number] | undefined => rate && [!rate.exceeded, rate.remaining];

it('lets an organization make so many requests a minute, and says what is left and until when', () => {
  const take = createTakeRate({ ...OFF, chat: 2 }, clock);

  const first = take('chat', 'org_1');
  now += 20_000;
  const rest = [take('chat', 'org_1'), take('chat', 'org_1'), take('chat', 'org_1')];

  expect([first, ...rest]).toEqual([
    { exceeded: false, limit: 2, remaining: 1, resetMs: 60_000 },
    { exceeded: false, limit: 2, remaining: 0, resetMs: 40_000 },
    { exceeded: true, limit: 2, remaining: 0, resetMs: 40_000 },
    { exceeded: true, limit: 2, remaining: 0, resetMs: 40_000 },
  ]);
});

it('starts again when the minute is over, however often it was asked in between', () => {
  const take = createTakeRate({ ...OFF, chat: 1 }, clock);
  take('chat', 'org_1');
  for (let i = 0; i < 5; i += 1) take('chat', 'org_1');

  now += 59_999;
  const before = take('chat', 'org_1');
  now += 1;
  const after = take('chat', 'org_1');

  expect([before?.exceeded, after]).toEqual([true, { exceeded: false, limit: 1, remaining: 0, resetMs: 60_000 }]);
});

it('counts organizations and endpoints apart', () => {
  const take = createTakeRate({ ...OFF, chat: 1, images: 1 }, clock);

  const taken = [];
  for (const endpoint of ['chat', 'images'] as const) {
    for (const organization of ['org_1', 'org_2']) taken.push(passed(take(endpoint, organization)));
  }

  expect(taken).toEqual([1, 2, 3, 4].map(() => [true, 0]));
  expect(passed(take('images', 'org_2'))).toEqual([false, 0]);
});

it('does not count where there is no limit', () => {
  expect(createTakeRate(OFF)('chat', 'org_1')).toBeUndefined();
});

it('never lets more pass than the limit, however many ask', () => {
  const take = createTakeRate({ ...OFF, chat: 10 }, clock);

  const rates = Array.from({ length: 64 }, () => take('chat', 'org_1'));

  expect(rates.filter((rate) => rate?.exceeded === false)).toHaveLength(10);
});

it('remembers a bounded number of organizations: the window that began first is forgotten', () => {
  const take = createTakeRate({ ...OFF, chat: 1 }, clock, 2);
  for (const organization of ['org_1', 'org_2']) take('chat', organization);
  now += 60_000;
  for (const organization of ['org_2', 'org_1', 'org_3']) take('chat', organization);

  const again = [];
  for (const organization of ['org_1', 'org_3', 'org_2']) again.push(passed(take('chat', organization)));

  expect(again).toEqual([
    [false, 0],
    [false, 0],
    [true, 0],
  ]);
});

it.each([
  [60_000, '60'],
  [1001, '2'],
  [1000, '1'],
  [1, '1'],
])('with %i ms to go the caller is asked to come back in %s s', (resetMs, seconds) => {
  const error = rateLimitExceeded({ exceeded: true, limit: 600, remaining: 0, resetMs }, 'Your organization');

  expect([error.status, error.headers, error.envelope()]).toEqual([
    429,
    { 'retry-after': seconds },
    {
      error: {
        message: `Your organization has made its 600 requests of this minute. Try again in ${seconds} s.`,
        type: 'rate_limit_error',
        param: null,
        code: 'rate_limit_exceeded',
      },
    },
  ]);
});
