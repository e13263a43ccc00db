import { networkOf, clientAddress as resolveClientAddress, type TrustedProxies } from '../../domain/client-ip.ts';
import type { AppMiddleware } from '../state.ts';

/**
 * Determines whose address IP rules judge, null when that cannot be told; and who is counted as one caller. Whoever may write the
 * header must not have as many shares as there are addresses: it counts only where proxies are named.
 */
export function clientAddress(trustedProxies: TrustedProxies | undefined): AppMiddleware {
  return (ctx, next) => {
    const header = ctx.req.headers['x-forwarded-for'];
    const socketAddress = ctx.req.socket.remoteAddress ?? '';
    const clientIp = resolveClientAddress({
      forwardedFor: typeof header === 'string' ? header : header?.join(','),
      socketAddress,
      trustedProxies,
    });
    ctx.state.clientIp = clientIp;
    ctx.state.network = networkOf((trustedProxies === undefined ? null : clientIp) ?? socketAddress);
    return next();
  };
}
