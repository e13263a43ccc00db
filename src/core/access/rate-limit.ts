import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../../domain/errors.ts';
import { type LimitedEndpoint, OAUTH_RATE, type RateLimits, SIGN_IN_RATE } from '../../domain/rate-limits.ts';

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
export type TakeRate = (endpoint: LimitedEndpoint, caller: string) => Promise<Rate | undefined>;

const WINDOW_SECONDS = 60;

/** Most callers whose windows are remembered; beyond, the window that began first is forgotten. */
const MAX_REMEMBERED = 10_000;

/** Windows of a minute, each begun by a caller's first request. In memory: a start forgets them. */
class EndpointRate {
  readonly #limit: number;
  readonly #limiter: RateLimiterMemory;
  readonly #maxRemembered: number;
  /** Callers in the order in which their windows began. */
  readonly #remembered = new Set<string>();

  constructor(limit: number, maxRemembered: number) {
    this.#limit = limit;
    this.#limiter = new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS });
    this.#maxRemembered = maxRemembered;
  }

  async take(caller: string): Promise<Rate> {
    const taken = await this.#limiter.consume(caller).catch(refused);
    if (taken.isFirstInDuration) await this.#remember(caller);
    return {
      exceeded: taken.consumedPoints > this.#limit,
      limit: this.#limit,
      remaining: taken.remainingPoints,
      resetMs: taken.msBeforeNext,
    };
  }

  async #remember(caller: string): Promise<void> {
    this.#remembered.delete(caller);
    this.#remembered.add(caller);
    if (this.#remembered.size <= this.#maxRemembered) return;
    const [oldest] = this.#remembered;
    if (oldest === undefined) return;
    this.#remembered.delete(oldest);
    await this.#limiter.delete(oldest);
  }
}

/** The limiter rejects with the same kind of result that it resolves with. */
function refused(reason: unknown): RateLimiterRes {
  if (reason instanceof RateLimiterRes) return reason;
  throw reason;
}

/**
 * Rate limits by caller and endpoint. Time is the system's own, not the injected clock's: windows are not kept, and nothing
 * of what is on record depends on them.
 */
export function createTakeRate(limits: RateLimits, maxRemembered: number = MAX_REMEMBERED): TakeRate {
  const rateOf = (limit: number | undefined): EndpointRate | undefined =>
    limit === undefined ? undefined : new EndpointRate(limit, maxRemembered);
  const rates: Readonly<Record<LimitedEndpoint, EndpointRate | undefined>> = {
    chat: rateOf(limits.chat),
    images: rateOf(limits.images),
    models: rateOf(limits.models),
    moderations: rateOf(limits.moderations),
    mcp: rateOf(limits.mcp),
    management: rateOf(limits.management),
    sign_in: rateOf(SIGN_IN_RATE),
    oauth: rateOf(OAUTH_RATE),
  };
  return async (endpoint, caller) => rates[endpoint]?.take(caller);
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
