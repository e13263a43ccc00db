import { overloaded } from '../../domain/errors.ts';
import { noRoom, type Room } from '../../net/answer-bounds.ts';
import type { AppContext, AppMiddleware } from '../state.ts';

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

/** Whoever runs the gateway must learn how it is above all when it has too much to do; these hold nothing and wait for nothing. */
const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/** Counts what an answer takes with the body of its request, up to the most that it took at once. @throws ApiError 503 */
function roomIn(load: Load, { state, res }: AppContext): Room {
  let taken = 0;
  return (bytes) => {
    const more = bytes - taken;
    if (more <= 0) return;
    // Of a request that is over nothing is given back any more.
    if (res.closed || load.bufferedBytes + more > load.limits.maxBufferedBytes) throw noRoom();
    load.bufferedBytes += more;
    state.bufferedBytes += more;
    taken = bytes;
  };
}

/** Refuses what exceeds the bounds before anything is done for it (decisions.md, section 9). */
export function overload(load: Load): AppMiddleware {
  return (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    if (load.inFlight >= load.limits.maxInFlight) throw overloaded();
    load.inFlight += 1;
    ctx.state.bufferedBytes = 0;
    ctx.state.room = roomIn(load, ctx);
    ctx.res.on('close', () => {
      load.inFlight -= 1;
      load.bufferedBytes -= ctx.state.bufferedBytes;
    });
    return next();
  };
}
