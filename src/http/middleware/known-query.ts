import { invalidRequest } from '../../domain/errors.ts';
import { QUERY_NAMES } from '../../generated/query-names.ts';
import type { AppMiddleware } from '../state.ts';

/** Characters of an unknown name that are repeated. */
const MAX_SHOWN = 64;

/**
 * Refuses a query parameter that the route does not take: ignored, a misspelt filter would show everything. It goes
 * after the router, which knows the route. @throws ApiError 400 that lists the parameters that there are
 */
export const knownQuery: AppMiddleware = (ctx, next) => {
  const route: unknown = ctx._matchedRoute;
  const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
  const known = QUERY_NAMES.get(`${method} ${String(route)}`) ?? [];
  for (const name of ctx.state.query.keys()) {
    if (known.includes(name)) continue;
    const taken = known.length === 0 ? 'this request takes none' : `this request takes ${known.join(', ')}`;
    const given = name.slice(0, MAX_SHOWN);
    throw invalidRequest(`The query parameter ${given} is not known: ${taken}.`, `/${given}`);
  }
  return next();
};
