import { isIP } from 'node:net';
import { ApiError } from '../../domain/errors.ts';
import type { AppMiddleware } from '../state.ts';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

const [ZERO, NINE] = [0x30, 0x39];

/** The host name of a `Host` header, lower-cased, without its port. */
export function hostName(header: string): string {
  const name = header.toLowerCase();
  const colon = name.lastIndexOf(':');
  return colon !== -1 && hasOnlyDigits(name, colon + 1) ? name.slice(0, colon) : name;
}

function hasOnlyDigits(text: string, start: number): boolean {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < ZERO || code > NINE) return false;
  }
  return true;
}

const bracketed = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address);

/** A literal address; IPv6 stands in brackets. */
const isAddress = (name: string): boolean =>
  isIP(name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name) !== 0;

const FOREIGN =
  'This gateway does not serve the host named in the request. PUBLIC_URL and ALLOWED_HOSTS say under which names it is reached.';

export interface HostCheckOptions {
  /** The address that the listener is bound to. */
  boundHost: string;
  publicUrl: string | undefined;
  allowedHosts: readonly string[];
}

/** Whether a host name, lower-cased and without its port, is one of this gateway's. */
export function hostKnower(options: HostCheckOptions): (name: string) => boolean {
  const known = new Set([
    ...LOOPBACK,
    bracketed(options.boundHost.toLowerCase()),
    ...options.allowedHosts.map(hostName),
  ]);
  if (options.publicUrl !== undefined) known.add(new URL(options.publicUrl).hostname);
  const anyAddress = options.boundHost === '0.0.0.0' || options.boundHost === '::';
  return (name) => known.has(name) || (anyAddress && isAddress(name));
}

/**
 * Refuses a foreign `Host` with 421, so that a web page cannot reach a loopback listener by rebinding its own name to it
 * (src/http/README.md, "Errors and hostile input"). A listener bound to every address also accepts any literal address: a name
 * cannot be rebound to itself.
 */
export function hostCheck(options: HostCheckOptions): AppMiddleware {
  const isKnown = hostKnower(options);
  return (ctx, next) => {
    if (isKnown(hostName(ctx.req.headers.host ?? ''))) return next();
    throw new ApiError(421, 'misdirected_request', FOREIGN);
  };
}
