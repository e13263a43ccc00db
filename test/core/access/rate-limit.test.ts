import { beforeEach, describe, expect, it } from 'vitest';
import { type Rate, Rates, rateLimitExceeded, type Standing } from '../../../src/core/caller.ts';
import type { KeyRate } from '../../../src/domain/limits.ts';

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

interface TestCaller {
  readonly keyId: string;
  readonly memberId: string;
  readonly organizationId: string;
  readonly rates: readonly KeyRate[];
}

const caller = (keyId = 'key_1', memberId = 'mem_1', rates: readonly KeyRate[] = []): TestCaller => ({
  keyId,
  memberId,
  organizationId: 'org_1',
  rates,
});
const bound = (scope: KeyRate['scope'], subjectId: string, limits: Partial<KeyRate>): KeyRate => ({
  scope,
  subjectId,
  requests: null,
  tokens: null,
  ...limits,
});

const passes = (standing: Standing | undefined): boolean => standing?.refused === undefined;
/** `[limit, remaining]` */
const shown = (rate: Rate | undefined) => rate && [rate.limit, rate.remaining];

/** How many of so many requests pass. */
const passed = (rates: Rates, who: TestCaller, requests: number): number =>
  Array.from({ length: requests }, () => passes(rates.takeOf('chat', who))).filter(Boolean).length;

describe('an address or a master key', () => {
  const take = (rates: Rates, name: string) => rates.take('management', name, 'master_key');
  const rate = (remaining: number, resetMs: number): Rate => ({
    unit: 'requests',
    scope: 'master_key',
    limit: 2,
    remaining,
    resetMs,
    share: undefined,
  });

  it('may make so many requests a minute, and learns what is left and until when', () => {
    const rates = new Rates({ ...OFF, management: 2 }, clock);

    const first = take(rates, 'mkey_1');
    now += 20_000;
    const rest = [take(rates, 'mkey_1'), take(rates, 'mkey_1'), take(rates, 'mkey_2')];

    expect([first, ...rest]).toEqual([
      { requests: rate(1, 60_000), tokens: undefined, refused: undefined },
      { requests: rate(0, 40_000), tokens: undefined, refused: undefined },
      { requests: rate(0, 40_000), tokens: undefined, refused: rate(0, 40_000) },
      { requests: rate(1, 60_000), tokens: undefined, refused: undefined },
    ]);
  });

  it('starts again when the minute is over, however often it was asked in between', () => {
    const rates = new Rates({ ...OFF, management: 1 }, clock);
    for (let i = 0; i < 5; i += 1) take(rates, 'mkey_1');

    now += 59_999;
    const before = passes(take(rates, 'mkey_1'));
    now += 1;

    expect([before, passes(take(rates, 'mkey_1'))]).toEqual([false, true]);
  });

  it('is not counted where there is no limit', () => {
    expect(take(new Rates(OFF, clock), 'mkey_1')).toBeUndefined();
  });

  it('is remembered among a bounded number: the window that began first is forgotten', () => {
    const rates = new Rates({ ...OFF, management: 1 }, clock, 2);
    for (const name of ['a', 'b']) take(rates, name);
    now += 60_000;
    for (const name of ['b', 'a', 'c']) take(rates, name);

    expect(['a', 'c', 'b'].map((name) => passes(take(rates, name)))).toEqual([false, false, true]);
  });
});

describe("an organization's limit", () => {
  it('is all of it for one key that asks alone, and no more, however many requests come at once', () => {
    expect(passed(new Rates({ ...OFF, chat: 10 }, clock), caller(), 64)).toBe(10);
  });

  it('is counted apart for each endpoint and organization', () => {
    const rates = new Rates({ ...OFF, chat: 1, images: 1 }, clock);
    const others = { ...caller(), organizationId: 'org_2' };

    const taken = [caller(), others].flatMap((who) => [rates.takeOf('chat', who), rates.takeOf('images', who)]);

    expect(taken.map(passes)).toEqual([true, true, true, true]);
    expect(passes(rates.takeOf('images', others))).toBe(false);
  });

  it('leaves each of eleven colleagues their share, though one key in a loop has used it up', () => {
    const rates = new Rates({ ...OFF, chat: 60 }, clock);
    const loop = caller('key_loop', 'mem_loop');
    const colleagues = Array.from({ length: 11 }, (_, index) => caller(`key_${index}`, `mem_${index}`));

    const looped = passed(rates, loop, 1000);
    const served = colleagues.map((each) => passed(rates, each, 5));

    expect([looped, served]).toEqual([60, colleagues.map(() => 5)]);
    expect(passed(rates, loop, 1000)).toBe(0);
  });

  it('is repaid for what it let through beyond: after the first minute no more passes than the limit', () => {
    const rates = new Rates({ ...OFF, chat: 60 }, clock);
    const loop = caller('key_loop', 'mem_loop');
    const colleagues = Array.from({ length: 11 }, (_, index) => caller(`key_${index}`, `mem_${index}`));

    const minutes = Array.from({ length: 4 }, () => {
      const own = passed(rates, loop, 1000);
      const others = colleagues.map((each) => passed(rates, each, 4));
      now += 60_000;
      return [own, Math.min(...others)];
    });

    expect(minutes).toEqual([
      [60, 4],
      [16, 4],
      [16, 4],
      [16, 4],
    ]);
  });

  it('forgets after a minute without a request what it let through beyond', () => {
    const rates = new Rates({ ...OFF, chat: 10 }, clock);
    passed(rates, caller('key_1', 'mem_1'), 10);
    passed(rates, caller('key_2', 'mem_2'), 5);
    now += 120_000;

    expect(passed(rates, caller('key_1', 'mem_1'), 64)).toBe(10);
  });

  it('has a share for each member, which many keys of one member divide', () => {
    const rates = new Rates({ ...OFF, chat: 100 }, clock);
    const keys = Array.from({ length: 1000 }, (_, index) => caller(`key_${index}`, 'mem_many'));
    passed(rates, caller('key_other', 'mem_other'), 100);

    const first = keys.reduce((sum, key) => sum + passed(rates, key, 100), 0);
    now += 60_000;
    const second = keys.reduce((sum, key) => sum + passed(rates, key, 100), 0);

    // In the first minute 50 + 25 + 16 + …, in the next one the share at most, and never anything of the other member's.
    expect([first, second]).toEqual([207, 50]);
    expect(passed(rates, caller('key_other', 'mem_other'), 100)).toBe(50);
  });

  it('serves a member who comes new, even where there are more members than requests', () => {
    const rates = new Rates({ ...OFF, chat: 2 }, clock);

    const served = Array.from({ length: 5 }, (_, index) => passed(rates, caller(`key_${index}`, `mem_${index}`), 3));

    expect(served).toEqual([2, 1, 1, 1, 1]);
  });

  it('tells each key what it may still take, never less than nothing', () => {
    const rates = new Rates({ ...OFF, chat: 4 }, clock);
    const [one, other] = [caller('key_1', 'mem_1'), caller('key_2', 'mem_2')];

    const told = [one, one, one, one, one, other, other, other].map((who) => rates.takeOf('chat', who));

    expect(told.map((standing) => [passes(standing), standing?.requests?.remaining])).toEqual([
      [true, 3],
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
      [true, 1],
      [true, 0],
      [false, 0],
    ]);
  });

  it('takes bounded memory for 100,000 keys, and those that are not remembered have no share', () => {
    const rates = new Rates({ ...OFF, chat: 1_000_000 }, clock, 1000);
    const before = process.memoryUsage().heapUsed;
    for (let key = 0; key < 100_000; key += 1) rates.takeOf('chat', caller(`key_${key}`, `mem_${key}`));
    const grown = process.memoryUsage().heapUsed - before;

    expect(grown).toBeLessThan(50_000_000);
    expect(rates.takeOf('chat', caller('key_new', 'mem_new'))?.requests).toMatchObject({
      share: 0,
      remaining: 899_999,
    });
  });
});

describe('the limits of a key and of those that it belongs to', () => {
  const ofKey = bound('key', 'key_1', { requests: 10 });

  it.each([
    ['key', 'This API key has made its 10 requests of this minute.'],
    ['member', 'The owner of this API key has made their 10 requests of this minute.'],
    ['project', 'The project of this API key has made its 10 requests of this minute.'],
    ['organization', 'Your organization has made its 10 requests of this minute.'],
  ] as const)('let exactly ten of 64 requests pass, and the 429 names the %s', (scope, message) => {
    const rates = new Rates({ ...OFF, chat: 600 }, clock);
    const who = caller('key_1', 'mem_1', [bound(scope, 'subject', { requests: 10 })]);

    expect(passed(rates, who, 64)).toBe(10);
    const refused = rates.takeOf('chat', who)?.refused;
    expect(refused && rateLimitExceeded(refused).message).toBe(`${message} Try again in 60 s.`);
  });

  it.each(['member', 'project'] as const)('of a %s are exact over all keys', (scope) => {
    const rates = new Rates(OFF, clock);
    const limits = [bound(scope, 'subject', { requests: 10 })];
    const keys = Array.from({ length: 8 }, (_, index) => caller(`key_${index}`, 'mem_1', limits));

    expect(keys.map((key) => passed(rates, key, 8))).toEqual([8, 2, 0, 0, 0, 0, 0, 0]);
  });

  it('count calls at every endpoint together, and neither lists of models nor messages of MCP', () => {
    const rates = new Rates({ ...OFF, models: 600, mcp: 600 }, clock);
    const who = caller('key_1', 'mem_1', [bound('key', 'key_1', { requests: 3 })]);

    const calls = (['chat', 'images', 'moderations', 'chat'] as const).map((each) => passes(rates.takeOf(each, who)));

    expect(calls).toEqual([true, true, true, false]);
    expect((['models', 'mcp'] as const).map((each) => shown(rates.takeOf(each, who)?.requests))).toEqual([
      [600, 599],
      [600, 599],
    ]);
  });

  it('show the nearest one in the headers, which a refused request does not change', () => {
    const rates = new Rates({ ...OFF, chat: 100 }, clock);
    const who = caller('key_1', 'mem_1', [
      bound('key', 'key_1', { requests: 2 }),
      bound('project', 'proj_1', { requests: 50 }),
    ]);

    const told = [1, 2, 3, 4].map(() => shown(rates.takeOf('chat', who)?.requests));
    const colleague = caller('key_2', 'mem_1', [bound('project', 'proj_1', { requests: 50 })]);

    expect(told).toEqual([
      [2, 1],
      [2, 0],
      [2, 0],
      [2, 0],
    ]);
    // The two that passed, and this one.
    expect(shown(rates.takeOf('chat', colleague)?.requests)).toEqual([50, 47]);
  });

  it('hold as they are at the time of the request', () => {
    const rates = new Rates(OFF, clock);
    const at = (requests: number | null) =>
      passes(rates.takeOf('chat', caller('key_1', 'mem_1', [{ ...ofKey, requests }])));

    expect([at(1), at(1), at(2), at(2), at(null), at(1)]).toEqual([true, false, true, false, true, false]);
  });

  it('of tokens refuse the next request once they are used, in the minute alone in which they were', () => {
    const rates = new Rates({ ...OFF, chat: 600 }, clock);
    const who = caller('key_1', 'mem_1', [bound('key', 'key_1', { tokens: 1000 })]);

    const first = rates.takeOf('chat', who);
    rates.spend(who, 900);
    const second = rates.takeOf('chat', who);
    rates.spend(who, 5000);
    now += 30_000;
    const third = rates.takeOf('chat', who);
    now += 30_000;

    expect([shown(first?.tokens), shown(second?.tokens), shown(third?.tokens)]).toEqual([
      [1000, 1000],
      [1000, 100],
      [1000, 0],
    ]);
    expect([passes(first), passes(second), passes(third)]).toEqual([true, true, false]);
    expect(third?.refused && rateLimitExceeded(third.refused).message).toBe(
      'This API key has used its 1000 tokens of this minute. Try again in 30 s.',
    );
    expect(shown(rates.takeOf('chat', who)?.tokens)).toEqual([1000, 1000]);
  });

  it('of tokens of an organization leave a colleague their share, though one key has used them up', () => {
    const rates = new Rates(OFF, clock);
    const limits = [bound('organization', 'org_1', { tokens: 1000 })];
    const [loop, colleague] = [caller('key_1', 'mem_1', limits), caller('key_2', 'mem_2', limits)];

    rates.takeOf('chat', loop);
    rates.spend(loop, 100_000);
    const asked = [rates.takeOf('chat', loop), rates.takeOf('chat', colleague)];
    rates.spend(colleague, 500);

    expect([...asked, rates.takeOf('chat', colleague)].map(passes)).toEqual([false, true, false]);
    expect(asked[1]?.tokens?.remaining).toBe(500);
  });
});

it.each([
  [60_000, '60'],
  [1001, '2'],
  [1000, '1'],
  [1, '1'],
])('with %i ms to go the caller is asked to come back in %s s', (resetMs, seconds) => {
  const rate = { unit: 'requests', scope: 'organization', limit: 600, remaining: 0, resetMs, share: 600 } as const;
  const error = rateLimitExceeded(rate);

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

it('the message names the share that a key has had of what others have used up', () => {
  const rate = { unit: 'requests', scope: 'organization', limit: 600, remaining: 0, resetMs: 1, share: 50 } as const;

  expect(rateLimitExceeded(rate).message).toBe(
    'Your organization has made its 600 requests of this minute, and this API key its share of 50. Try again in 1 s.',
  );
});
