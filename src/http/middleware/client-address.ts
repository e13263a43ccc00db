import { clientAddress as resolveClientAddress, type TrustedProxies } from '../../domain/client-ip.ts';
import type { AppMiddleware } from '../state.ts';

/** Determines whose address IP rules judge; null when that cannot be told. */
export function clientAddress(trustedProxies: TrustedProxies | undefined): AppMiddleware {
  return (ctx, next) => {
    const header = ctx.req.headers['x-forwarded-for'];
    ctx.state.clientIp = resolveClientAddress({
      forwardedFor: typeof header === 'string' ? header : header?.join(','),
      socketAddress: ctx.req.socket.remoteAddress,
      trustedProxies,
    });
    return next();
  };
}
