import type { IncomingMessage } from 'node:http';
import type { HostCheckOptions } from '../../middleware/host-check.ts';
import { hostName } from '../../middleware/host-check.ts';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Requests for which OAuth cannot be served. */
export const NEEDS_PUBLIC_URL =
  'OAuth needs PUBLIC_URL, without a path, where the gateway is reached by another name than that of its own loopback address.';

/**
 * At which origin OAuth is served to who sends a request; undefined: nowhere. Nothing but `PUBLIC_URL` decides it, or the loopback
 * address on which the gateway listens: tokens and addresses are never made for a host that a caller names (RFC 9728 wants the very
 * name by which the client called, and loopback has several).
 */
export function oauthOrigin(
  { headers, socket }: IncomingMessage,
  { publicUrl, boundHost }: Pick<HostCheckOptions, 'publicUrl' | 'boundHost'>,
): string | undefined {
  if (publicUrl !== undefined) {
    const url = new URL(publicUrl);
    return url.pathname === '/' ? url.origin : undefined;
  }
  const name = hostName(headers.host ?? '');
  const isOwn = LOOPBACK.includes(name) && isLoopback(boundHost) && headers.host === `${name}:${socket.localPort}`;
  return isOwn ? `http://${headers.host}` : undefined;
}

const isLoopback = (host: string): boolean => [...LOOPBACK, '::1'].includes(host);
