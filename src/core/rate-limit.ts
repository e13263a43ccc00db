import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../domain/errors.ts';
import type { LimitedEndpoint, RateLimits } from '../domain/rate-limits.ts';

/** How an organization stands with an endpoint after one more request. */
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
export type TakeRate = (endpoint: LimitedEndpoint, organizationId: string) => Promise<Rate | undefined>;

const WINDOW_SECONDS = 60;

/** Most organizations whose windows are remembered; beyond, the window that began first is forgotten. */
const MAX_REMEMBERED = 10_000;

/** Windows of a minute, each begun by an organization's first request. In memory: a start forgets them. */
class EndpointRate {
  readonly #limit: number;
  readonly #limiter: RateLimiterMemory;
  readonly #maxRemembered: number;
  /** Organizations in the order in which their windows began. */
  readonly #remembered = new Set<string>();

  constructor(limit: number, maxRemembered: number) {
    this.#limit = limit;
    this.#limiter = new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS });
    this.#maxRemembered = maxRemembered;
  }

  async take(organizationId: string): Promise<Rate> {
    const taken = await this.#limiter.consume(organizationId).catch(refused);
    if (taken.isFirstInDuration) await this.#remember(organizationId);
    return {
      exceeded: taken.consumedPoints > this.#limit,
      limit: this.#limit,
      remaining: taken.remainingPoints,
      resetMs: taken.msBeforeNext,
    };
  }

  async #remember(organizationId: string): Promise<void> {
    this.#remembered.delete(organizationId);
    this.#remembered.add(organizationId);
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
 * Rate limits by organization and endpoint. Time is the system's own, not the injected clock's: windows are not kept, and nothing
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
  };
  return async (endpoint, organizationId) => rates[endpoint]?.take(organizationId);
}

/** What a caller is told whose request was one too many: 429 `rate_limit_exceeded`. */
export function rateLimitExceeded({ limit, resetMs }: Rate): ApiError {
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  return new ApiError(
    429,
    'rate_limit_exceeded',
    `Your organization has made its ${limit} requests of this minute. Try again in ${seconds} s.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}
