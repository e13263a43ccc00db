import { ApiError } from '../../domain/errors.ts';
import { type LimitedEndpoint, limitsOf, type RateLimits } from '../../domain/rate-limits.ts';

/** How a caller stands with an endpoint after one more request. */
export interface Rate {
  readonly exceeded: boolean;
  /** Requests a minute. */
  readonly limit: number;
  /** Requests that still pass in this window. */
  readonly remaining: number;
  /** Milliseconds until the window ends; the next request after that begins another one. */
  readonly resetMs: number;
}

/** Counts one request; undefined where nothing is limited. Whether it is let through is the caller's business. */
export type TakeRate = (endpoint: LimitedEndpoint, caller: string) => Rate | undefined;

/** How long a window lasts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** Most callers whose windows are remembered; beyond, the window that began first is forgotten. */
const MAX_REMEMBERED = 10_000;

interface Window {
  readonly endsAt: number;
  requests: number;
}

/** Windows of a minute, each begun by a caller's first request. In memory: a start forgets them. */
class EndpointRate {
  readonly #limit: number;
  readonly #maxRemembered: number;
  /** In the order in which they began. */
  readonly #windows = new Map<string, Window>();

  constructor(limit: number, maxRemembered: number) {
    this.#limit = limit;
    this.#maxRemembered = maxRemembered;
  }

  take(caller: string, now: number): Rate {
    const present = this.#windows.get(caller);
    const window = present === undefined || present.endsAt <= now ? this.#begin(caller, now) : present;
    window.requests += 1;
    return {
      exceeded: window.requests > this.#limit,
      limit: this.#limit,
      remaining: Math.max(0, this.#limit - window.requests),
      resetMs: window.endsAt - now,
    };
  }

  #begin(caller: string, now: number): Window {
    this.#windows.delete(caller);
    if (this.#windows.size >= this.#maxRemembered) {
      const [oldest] = this.#windows.keys();
      if (oldest !== undefined) this.#windows.delete(oldest);
    }
    const window = { endsAt: now + WINDOW_MS, requests: 0 };
    this.#windows.set(caller, window);
    return window;
  }
}

/**
 * Rate limits by caller and endpoint.
 * @param now whole milliseconds that never go back, even when the system's clock is set
 */
export function createTakeRate(
  limits: RateLimits,
  now: () => number = () => Math.floor(performance.now()),
  maxRemembered: number = MAX_REMEMBERED,
): TakeRate {
  const limitOf = limitsOf(limits);
  const rateOf = (limit: number | undefined): EndpointRate | undefined =>
    limit === undefined ? undefined : new EndpointRate(limit, maxRemembered);
  const rates: Readonly<Record<LimitedEndpoint, EndpointRate | undefined>> = {
    chat: rateOf(limitOf.chat),
    images: rateOf(limitOf.images),
    models: rateOf(limitOf.models),
    moderations: rateOf(limitOf.moderations),
    mcp: rateOf(limitOf.mcp),
    management: rateOf(limitOf.management),
    sign_in: rateOf(limitOf.sign_in),
    oauth: rateOf(limitOf.oauth),
  };
  return (endpoint, caller) => rates[endpoint]?.take(caller, now());
}

/** The answer to one request too many: 429 `rate_limit_exceeded`. @param who `Your organization` or the like */
export function rateLimitExceeded({ limit, resetMs }: Rate, who: string): ApiError {
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  return new ApiError(
    429,
    'rate_limit_exceeded',
    `${who} has made its ${limit} requests of this minute. Try again in ${seconds} s.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}
