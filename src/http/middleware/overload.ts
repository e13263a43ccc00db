import type { Load } from '../load.ts';
import type { AppMiddleware } from '../state.ts';

/** Whoever runs the gateway must learn how it is above all when it has too much to do; these hold nothing and wait for nothing. */
const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/**
 * Refuses what exceeds the bounds, of all or of this caller, before anything is done for it (decisions.md, section 9). A request
 * without a key counts for its address at once. One that names a key counts for that key as soon as it is known, and for its address
 * if it never is: whoever fills the share of an address keeps no key from being served there.
 */
export function overload(load: Load): AppMiddleware {
  return (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    const place = load.enter();
    ctx.state.place = place;
    ctx.res.on('close', () => place.closed());
    if (ctx.req.headers.authorization === undefined) place.countForAddress(ctx.state.network);
    return next();
  };
}
