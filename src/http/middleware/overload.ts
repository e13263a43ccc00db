import { ApiError } from '../../domain/errors.ts';
import type { AppMiddleware } from '../state.ts';

export interface LoadLimits {
  /** Requests being served at once. */
  maxInFlight: number;
  /** Bytes of request bodies held in memory at once. */
  maxBufferedBytes: number;
}

/** What the process holds at the moment; shared by both listeners, since memory is. */
export interface Load {
  inFlight: number;
  bufferedBytes: number;
  readonly limits: LoadLimits;
}

export const createLoad = (limits: LoadLimits): Load => ({ inFlight: 0, bufferedBytes: 0, limits });

export const overloaded = (): ApiError =>
  new ApiError(503, 'overloaded', 'The gateway is overloaded. Try again shortly.', { headers: { 'retry-after': '1' } });

/** Whoever runs the gateway must learn how it is above all when it has too much to do; these hold nothing and wait for nothing. */
const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/** Refuses what exceeds the bounds before anything is done for it (decisions.md, section 9). */
export function overload(load: Load): AppMiddleware {
  return (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    if (load.inFlight >= load.limits.maxInFlight) throw overloaded();
    load.inFlight += 1;
    ctx.state.bufferedBytes = 0;
    ctx.res.on('close', () => {
      load.inFlight -= 1;
      load.bufferedBytes -= ctx.state.bufferedBytes;
    });
    return next();
  };
}
