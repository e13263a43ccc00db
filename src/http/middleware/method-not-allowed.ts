import type Router from '@koa/router';
import { ApiError } from '../../domain/errors.ts';
import type { AppMiddleware, RequestState } from '../state.ts';

/** 405 with `Allow` for a path that exists under other methods; OPTIONS is answered with the same list. */
export function methodNotAllowed(routers: readonly Router<RequestState>[]): AppMiddleware {
  return (ctx, next) => {
    const layers = routers.flatMap((router) => router.match(ctx.path, ctx.method).path);
    const methods = new Set(layers.flatMap((layer) => layer.methods));
    if (methods.size === 0 || methods.has(ctx.method)) return next();
    const allow = [...new Set([...methods, 'OPTIONS'])].sort().join(', ');
    if (ctx.method !== 'OPTIONS') {
      throw new ApiError(405, 'method_not_allowed', `${ctx.path} does not take ${ctx.method}.`, { headers: { allow } });
    }
    ctx.set('allow', allow);
    ctx.status = 204;
    return undefined;
  };
}
