import type { IncomingMessage } from 'node:http';
import { permissionDenied } from '../../domain/errors.ts';

const FOREIGN = 'The request comes from a page of another site.';

/**
 * What a listener knows of the addresses that browsers have for it. A `Host` that is not this gateway's is refused before
 * (middleware/host-check.ts).
 */
export class OwnOrigin {
  readonly #publicOrigin: string | undefined;

  /** @param publicUrl of this listener, if something stands in front of it */
  constructor(publicUrl: string | undefined) {
    this.#publicOrigin = publicUrl === undefined ? undefined : new URL(publicUrl).origin;
  }

  /**
   * Whether the browser speaks TLS. Without a public URL the proxy's word is taken: it only makes cookies stricter, and no web page
   * can send it.
   */
  isSecure(req: IncomingMessage): boolean {
    if (this.#publicOrigin !== undefined) return this.#publicOrigin.startsWith('https:');
    return req.headers['x-forwarded-proto'] === 'https';
  }

  /** Of the page that a request is for, or, where the browser says so, comes from. */
  of(req: IncomingMessage): string {
    const { origin } = req.headers;
    if (origin !== undefined && this.#isOwn(req, origin)) return origin;
    return this.#publicOrigin ?? `${this.isSecure(req) ? 'https' : 'http'}://${req.headers.host}`;
  }

  /** A request that changes something must come from a page of ours, by what its headers say. @throws ApiError 403 */
  check(req: IncomingMessage): void {
    const { origin } = req.headers;
    const site = req.headers['sec-fetch-site'];
    if (origin !== undefined && !this.#isOwn(req, origin)) throw permissionDenied(FOREIGN);
    // `none`: the person themself, as when a form is sent once more by reloading.
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw permissionDenied(FOREIGN);
  }

  #isOwn(req: IncomingMessage, origin: string): boolean {
    if (origin === this.#publicOrigin) return true;
    const { host } = req.headers;
    return origin === `http://${host}` || origin === `https://${host}`;
  }
}
