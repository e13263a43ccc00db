import { hash, randomBytes } from 'node:crypto';
import { type LimitedEndpoint, limitsOf, type RateLimits } from '../../domain/rate-limits.ts';
import { type Rate, type TakeRate, WINDOW_MS } from './rate-limit.ts';

/** A window stands in one of so many places of its set; where all are taken, the one that ends first is forgotten. */
const PLACES = 16;
/** A power of two. With 10,000 callers at each of the eight endpoints, two sets of 100,000 have too few places. */
const SETS = 16_384;
const WINDOWS = SETS * PLACES;

/** Milliseconds after which the lock of a thread that has died is taken over; it is held for a microsecond. */
const DEAD_MS = 100;

/** The windows of a minute of all threads, in memory that they share. */
export interface RateWindows {
  /** By which callers are spread over the sets: nobody can aim at another's. */
  readonly salt: string;
  readonly lock: Int32Array;
  /** Of a caller at an endpoint: two for each window. */
  readonly names: Int32Array;
  readonly requests: Int32Array;
  /** By `monotonicMs`; 0: the place is free. */
  readonly endsAt: Float64Array;
}

export const createRateWindows = (): RateWindows => ({
  salt: randomBytes(16).toString('base64url'),
  lock: new Int32Array(new SharedArrayBuffer(4)),
  names: new Int32Array(new SharedArrayBuffer(8 * WINDOWS)),
  requests: new Int32Array(new SharedArrayBuffer(4 * WINDOWS)),
  endsAt: new Float64Array(new SharedArrayBuffer(8 * WINDOWS)),
});

/** The same on all threads, which `performance.now()` is not. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + Math.floor(nanoseconds / 1_000_000);
}

function locked<T>(lock: Int32Array, work: () => T): T {
  while (Atomics.compareExchange(lock, 0, 0, 1) !== 0) {
    if (Atomics.wait(lock, 0, 1, DEAD_MS) === 'timed-out') break;
  }
  try {
    return work();
  } finally {
    Atomics.store(lock, 0, 0);
    Atomics.notify(lock, 0, 1);
  }
}

/** Where the window of a name stands, or may stand. */
function placeOf({ names, endsAt }: RateWindows, [one, other]: readonly [number, number], now: number): number {
  const first = (one & (SETS - 1)) * PLACES;
  let soonest = first;
  for (let place = first; place < first + PLACES; place += 1) {
    const end = endsAt[place] ?? 0;
    if (end > now && names[2 * place] === one && names[2 * place + 1] === other) return place;
    if (end < (endsAt[soonest] ?? 0)) soonest = place;
  }
  endsAt[soonest] = 0;
  return soonest;
}

/**
 * Rate limits by caller and endpoint, counted together with every other thread that has the same windows.
 * @param now as `createTakeRate` has it, and the same on all threads
 */
export function createSharedTakeRate(
  limits: RateLimits,
  windows: RateWindows,
  now: () => number = monotonicMs,
): TakeRate {
  const limitOf = limitsOf(limits);
  const { salt, lock, names, requests, endsAt } = windows;

  const take = (name: readonly [number, number], limit: number): Rate => {
    const at = now();
    const place = placeOf(windows, name, at);
    if (endsAt[place] === 0) {
      [names[2 * place], names[2 * place + 1]] = name;
      requests[place] = 0;
      endsAt[place] = at + WINDOW_MS;
    }
    const count = Math.min((requests[place] ?? 0) + 1, limit + 1);
    requests[place] = count;
    return {
      exceeded: count > limit,
      limit,
      remaining: Math.max(0, limit - count),
      resetMs: (endsAt[place] ?? at) - at,
    };
  };

  return (endpoint: LimitedEndpoint, caller: string) => {
    const limit = limitOf[endpoint];
    if (limit === undefined) return undefined;
    const digest = hash('sha256', `${salt} ${endpoint} ${caller}`, 'buffer');
    const name = [digest.readInt32LE(0), digest.readInt32LE(4)] as const;
    return locked(lock, () => take(name, limit));
  };
}
