import { type Rate, rateLimitExceeded, type TakeRate } from '../../core/access/rate-limit.ts';
import type { LimitedEndpoint } from '../../domain/rate-limits.ts';
import type { Telemetry } from '../../telemetry.ts';
import { principalOf } from '../call-context.ts';
import type { AppContext, AppMiddleware } from '../state.ts';

/** Counts the request against a caller's limit. @param who the caller in words, `Your organization` or the like. @throws ApiError 429 */
export type LimitRate = (ctx: AppContext, caller: string, who: string) => void;

/** Time as OpenAI writes it there: `1s`, `6m0s`. */
function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}

function setHeaders({ res }: AppContext, { limit, remaining, resetMs }: Rate): void {
  res.setHeader('x-ratelimit-limit-requests', String(limit));
  res.setHeader('x-ratelimit-remaining-requests', String(remaining));
  res.setHeader('x-ratelimit-reset-requests', duration(resetMs));
}

export interface LimitRateDeps {
  takeRate: TakeRate;
  telemetry: Telemetry;
}

/** Tells in headers, of every request that it counts, how much is left (src/http/README.md, "Rates and load"). */
export function limitRate({ takeRate, telemetry }: LimitRateDeps, endpoint: LimitedEndpoint): LimitRate {
  return (ctx, caller, who) => {
    const rate = takeRate(endpoint, caller);
    if (rate === undefined) return;
    setHeaders(ctx, rate);
    if (!rate.exceeded) return;
    telemetry.rateLimited(endpoint);
    throw rateLimitExceeded(rate, who);
  };
}

/** Counts the authenticated request against its organization's limit. @throws ApiError 429 */
export const limitOrganization = (ctx: AppContext, limit: LimitRate): void =>
  limit(ctx, principalOf(ctx).organizationId, 'Your organization');

/** Step 5 of the journey: an authenticated caller may have asked too often. */
export function rateLimit(deps: LimitRateDeps, endpoint: LimitedEndpoint): AppMiddleware {
  const limit = limitRate(deps, endpoint);
  return (ctx, next) => {
    limitOrganization(ctx, limit);
    return next();
  };
}
