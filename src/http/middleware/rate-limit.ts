import { type Rate, type Rates, rateLimitExceeded, type Standing } from '../../core/access/rate-limit.ts';
import type { LimitedEndpoint } from '../../domain/rate-limits.ts';
import type { Telemetry } from '../../telemetry.ts';
import { principalOf } from '../call-context.ts';
import type { AppContext, AppMiddleware } from '../state.ts';

/** Time as OpenAI writes it there: `1s`, `6m0s`. */
function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}

const namesOf = (unit: Rate['unit']) => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  reset: `x-ratelimit-reset-${unit}`,
});
const HEADERS = { requests: namesOf('requests'), tokens: namesOf('tokens') };

function setHeaders({ res }: AppContext, { unit, limit, remaining, resetMs }: Rate): void {
  const names = HEADERS[unit];
  res.setHeader(names.limit, String(limit));
  res.setHeader(names.remaining, String(remaining));
  res.setHeader(names.reset, duration(resetMs));
}

export interface LimitRateDeps {
  rates: Rates;
  telemetry: Telemetry;
}

/**
 * Tells in headers how the caller stands with the nearest limits (src/http/README.md, "Rates and load").
 * @throws ApiError 429 when one of them refuses the request
 */
function judge(ctx: AppContext, { telemetry }: LimitRateDeps, endpoint: LimitedEndpoint, standing: Standing): void {
  const { requests, tokens, refused } = standing;
  if (requests !== undefined) setHeaders(ctx, requests);
  if (tokens !== undefined) setHeaders(ctx, tokens);
  if (refused === undefined) return;
  telemetry.rateLimited(endpoint);
  throw rateLimitExceeded(refused);
}

/** Counts the request against the limit of an address or a master key. @throws ApiError 429 */
export type LimitRate = (ctx: AppContext, caller: string, scope: 'address' | 'master_key') => void;

export const limitRate =
  (deps: LimitRateDeps, endpoint: LimitedEndpoint): LimitRate =>
  (ctx, caller, scope) => {
    const standing = deps.rates.take(endpoint, caller, scope);
    if (standing !== undefined) judge(ctx, deps, endpoint, standing);
  };

/** Counts the authenticated request against the limits of its key and of those that the key belongs to. @throws ApiError 429 */
export function limitKey(ctx: AppContext, deps: LimitRateDeps, endpoint: LimitedEndpoint): void {
  const standing = deps.rates.takeOf(endpoint, principalOf(ctx));
  if (standing !== undefined) judge(ctx, deps, endpoint, standing);
}

/** Step 5 of the journey: an authenticated caller may have asked too often. */
export const rateLimit =
  (deps: LimitRateDeps, endpoint: LimitedEndpoint): AppMiddleware =>
  (ctx, next) => {
    limitKey(ctx, deps, endpoint);
    return next();
  };
