import type { Load } from '../load.ts';
import type { AppMiddleware } from '../state.ts';

/** Whoever runs the gateway must learn how it is above all when it has too much to do; these hold nothing and wait for nothing. */
const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/** Refuses what exceeds the bounds, of all or of this caller, before anything is done for it (decisions.md, section 9). */
export function overload(load: Load): AppMiddleware {
  return async (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    const place = load.enter(ctx.state.network);
    ctx.state.place = place;
    ctx.res.on('close', () => place.release());
    try {
      return await next();
    } finally {
      // A client that leaves does not end what was begun for it: the body is held until that is settled.
      place.release();
    }
  };
}
