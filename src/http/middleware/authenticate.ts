import type { Authenticate } from '../../core/authenticate.ts';
import { bearerToken } from '../credential.ts';
import type { AppMiddleware } from '../state.ts';

/** Step 4 of the journey: the bearer key becomes a principal, or 401. */
export function authenticate(authenticateKey: Authenticate): AppMiddleware {
  return async (ctx, next) => {
    ctx.state.principal = await authenticateKey(bearerToken(ctx.req));
    return next();
  };
}
