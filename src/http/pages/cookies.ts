import type { IncomingMessage } from 'node:http';
import type { AppContext } from '../state.ts';

/** `portcullis_form`: of who has no session yet, so that forms are bound to something. */
type CookieName = 'portcullis_session' | 'portcullis_form';

/** Over TLS browsers hold a cookie of this prefix to its host: no neighbour can set it, and it is never sent in clear. */
const nameOf = (name: CookieName, isSecure: boolean): string => (isSecure ? `__Host-${name}` : name);

/** The value of the first cookie of this name. */
export function readCookie(req: IncomingMessage, name: CookieName, isSecure: boolean): string | undefined {
  const start = `${nameOf(name, isSecure)}=`;
  const pairs = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(start))?.slice(start.length);
}

/** @param maxAge in seconds; 0 removes it; undefined: until the browser is closed */
export function setCookie(
  ctx: AppContext,
  name: CookieName,
  value: string,
  { isSecure, maxAge }: { readonly isSecure: boolean; readonly maxAge?: number },
): void {
  const parts = [`${nameOf(name, isSecure)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  if (isSecure) parts.push('Secure');
  if (maxAge !== undefined) parts.push(`Max-Age=${maxAge}`);
  ctx.append('set-cookie', parts.join('; '));
}
