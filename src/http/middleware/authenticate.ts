import type { Authenticate } from '../../core/authenticate.ts';
import { bearerToken } from '../credential.ts';
import { type AppContext, type AppMiddleware, placeOf } from '../state.ts';

/** The bearer key becomes a principal, whose organization and key the request counts for from now on. @throws ApiError 400, 401, 503 */
export async function authenticateCaller(ctx: AppContext, authenticateKey: Authenticate): Promise<void> {
  const principal = await authenticateKey(bearerToken(ctx.req));
  ctx.state.principal = principal;
  placeOf(ctx).countForKey(principal.organizationId, principal.keyId);
}

/** Step 4 of the journey. */
export function authenticate(authenticateKey: Authenticate): AppMiddleware {
  return async (ctx, next) => {
    await authenticateCaller(ctx, authenticateKey);
    return next();
  };
}
