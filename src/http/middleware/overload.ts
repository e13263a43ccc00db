import type { Load } from '../load.ts';
import type { AppMiddleware } from '../state.ts';

/** Operators need these most when the gateway has too much to do; they hold nothing and wait for nothing. */
export const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/**
 * Refuses what exceeds the bounds, of all or of this caller, before anything is done for it (src/http/README.md, "Rates and
 * load"). A request without a key counts for its address at once. A request that names a key counts for that key as soon as the
 * key is known, and for its address if the key is never known: a caller who fills the share of an address does not stop the keys
 * that are used there.
 */
export function overload(load: Load): AppMiddleware {
  return (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    const place = load.enter();
    ctx.state.place = place;
    const { authorization, 'x-api-key': apiKey } = ctx.req.headers;
    if (authorization === undefined && apiKey === undefined) place.countForAddress(ctx.state.network);
    return next();
  };
}
