import { networkOf, clientAddress as resolveClientAddress, type TrustedProxies } from '../../domain/client-ip.ts';
import type { AppMiddleware } from '../state.ts';

/**
 * Determines whose address IP rules judge, null when that cannot be told, and which network counts as one caller. There the header
 * counts only if proxies are named: a caller who writes it would otherwise have as many shares as there are addresses.
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
