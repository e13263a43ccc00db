import type { Authenticate } from '../../core/access/authenticate.ts';
import type { Principal } from '../../core/access/principal.ts';
import { apiKeyToken } from '../request/credential.ts';
import { type AppContext, type AppMiddleware, placeOf } from '../state.ts';

/** The request counts for its organization and key from now on. @throws ApiError 503 */
export function setPrincipal(ctx: AppContext, principal: Principal): void {
  ctx.state.principal = principal;
  placeOf(ctx).countForKey(principal.organizationId, principal.keyId);
}

/** Step 4 of the journey: the key, as bearer token or `x-api-key`, becomes a principal, or 401. */
export function authenticate(authenticateKey: Authenticate): AppMiddleware {
  return async (ctx, next) => {
    setPrincipal(ctx, await authenticateKey(apiKeyToken(ctx.req)));
    return next();
  };
}
