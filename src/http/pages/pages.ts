import type { IncomingMessage } from 'node:http';
import type Router from '@koa/router';
import { csrfTokenOf, isSessionSecret, newSessionSecret, readSession } from '../../admin/sign-in/sessions.ts';
import { ApiError, permissionDenied } from '../../domain/errors.ts';
import { isSameSecret } from '../../lib/text.ts';
import { touchSession } from '../../store/sign-in/sign-in-records.ts';
import type { PagesContext } from '../app-context.ts';
import { limitRate } from '../authenticate.ts';
import type { AppMiddleware, RequestContext, RequestState, Session } from '../state.ts';
import { type Form, parseForm } from './form.ts';
import { html, PAGES, type SafeHtml, seeOther } from './html.ts';

/** Tools that pages for people are built with. To a browser each answers in HTML, whatever goes wrong. */
export interface Pages {
  get(path: string, ...steps: AppMiddleware[]): void;
  /** Counts each request against the rate of its address. */
  post(path: string, ...steps: AppMiddleware[]): void;
  readonly origin: OwnOrigin;
  /** Looked up once in a request. */
  currentSession(ctx: RequestContext): Promise<Session | undefined>;
  /** Without a session: a page leads to sign-in and back, anything else is 401. `sessionOf` has it afterwards. */
  readonly requireSession: AppMiddleware;
  /** The form that was sent, from a page of ours and with its token. @throws ApiError 403, 413, 415, 400 */
  readForm(ctx: RequestContext): Promise<Form>;
  /** Checks a script's request in the same way, with its token in the header `x-csrf-token`. @throws ApiError 403 */
  readonly checkScript: AppMiddleware;
  /** Field that every form sent by POST must contain. Gives a visitor without a session a cookie for it. */
  csrfField(ctx: RequestContext): Promise<SafeHtml>;
  /** The token itself, for a script. */
  csrfToken(ctx: RequestContext): Promise<string>;
  /** Gives the browser a session that was begun; an empty secret takes it away. */
  setSession(ctx: RequestContext, secret: string): void;
}

/** The use of a session is noted at most so often, in milliseconds. */
const NOTED_EVERY = 300_000;

/** The cookie is kept as long as the longest session. */
const COOKIE_SECONDS = 7 * 24 * 3600;

/** The session that `requireSession` found. */
export function sessionOf(ctx: RequestContext): Session {
  const { session } = ctx.state;
  if (session === undefined || session === null) throw new Error('the page lacks its requireSession step');
  return session;
}

export const signedOut = (): ApiError =>
  new ApiError(401, 'not_signed_in', 'You are not signed in any more. Sign in, and try again.');

const outdated = (): ApiError => permissionDenied('This form is out of date. Load the page again, and send it then.');

/** The pages of one listener, with its own public URL. Those that are put first are found first: fixed paths before patterns. */
export function createPages(router: Router<RequestState>, app: PagesContext, publicUrl: string | undefined): Pages {
  const { store, clock, peppers } = app;
  const origin = new OwnOrigin(publicUrl);
  const limit = limitRate(app, 'sign_in');
  const limited: AppMiddleware = async (ctx, next) => {
    limit(ctx, ctx.state.network, 'address');
    return next();
  };

  async function find(ctx: RequestContext): Promise<Session | undefined> {
    const secret = readCookie(ctx.req, 'portcullis_session', origin.isSecure(ctx.req));
    if (secret === undefined) return undefined;
    const now = clock.now();
    const found = await store.read((db) => readSession(db, secret, peppers, now));
    if (found === undefined) return undefined;
    const { id, organizationId, member, organizationName, lastUsedAt } = found;
    if (now - lastUsedAt >= NOTED_EVERY) await store.write((db) => touchSession(db, organizationId, id, now));
    return { id, member, organizationName, csrfToken: csrfTokenOf(secret) };
  }

  async function currentSession(ctx: RequestContext): Promise<Session | undefined> {
    if (ctx.state.session === undefined) ctx.state.session = (await find(ctx)) ?? null;
    return ctx.state.session ?? undefined;
  }

  /** Mark that distinguishes browsers without a session; undefined: this one has not been given a form yet. */
  function visitor({ req }: RequestContext): string | undefined {
    const secret = readCookie(req, 'portcullis_form', origin.isSecure(req)) ?? '';
    return isSessionSecret(secret) ? secret : undefined;
  }

  function newVisitor(ctx: RequestContext): string {
    const secret = newSessionSecret();
    setCookie(ctx, 'portcullis_form', secret, { isSecure: origin.isSecure(ctx.req) });
    return secret;
  }

  const csrfToken = async (ctx: RequestContext): Promise<string> =>
    (await currentSession(ctx))?.csrfToken ?? csrfTokenOf(visitor(ctx) ?? newVisitor(ctx));

  async function checkToken(ctx: RequestContext, given: string): Promise<void> {
    const secret = visitor(ctx);
    const wanted = (await currentSession(ctx))?.csrfToken ?? (secret === undefined ? undefined : csrfTokenOf(secret));
    if (wanted === undefined || !isSameSecret(given, wanted)) throw outdated();
  }

  return {
    get: (path, ...steps) => void router.get(path, ...steps),
    post: (path, ...steps) => void router.post(path, limited, ...steps),
    origin,
    currentSession,
    async requireSession(ctx, next) {
      if ((await currentSession(ctx)) !== undefined) return next();
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
        throw signedOut();
      }
      return seeOther(ctx, `${PAGES}/sign-in?${new URLSearchParams({ next: ctx.url })}`);
    },
    async readForm(ctx) {
      origin.check(ctx.req);
      const form = await parseForm(ctx);
      await checkToken(ctx, form.text('csrf'));
      return form;
    },
    async checkScript(ctx, next) {
      origin.check(ctx.req);
      await checkToken(ctx, ctx.get('x-csrf-token'));
      return next();
    },
    async csrfField(ctx) {
      return html`<input type="hidden" name="csrf" value="${await csrfToken(ctx)}">`;
    },
    csrfToken,
    setSession(ctx, secret) {
      const isSecure = origin.isSecure(ctx.req);
      setCookie(ctx, 'portcullis_session', secret, { isSecure, maxAge: secret === '' ? 0 : COOKIE_SECONDS });
    },
  };
}

const FOREIGN = 'The request comes from a page of another site.';

/**
 * A listener's own addresses, as browsers know them. A `Host` that is not this gateway's is refused earlier
 * (`hostCheck` in pipeline.ts).
 */
class OwnOrigin {
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

  /** Origin of the page that a request is for, or, where the browser states it, comes from. */
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

/** `portcullis_form`: of who has no session yet, so that forms are bound to something. */
type CookieName = 'portcullis_session' | 'portcullis_form';

/** Over TLS browsers hold a cookie of this prefix to its host: no neighbour can set it, and it is never sent in clear. */
const nameOf = (name: CookieName, isSecure: boolean): string => (isSecure ? `__Host-${name}` : name);

/** The value of the first cookie of this name. */
function readCookie(req: IncomingMessage, name: CookieName, isSecure: boolean): string | undefined {
  const start = `${nameOf(name, isSecure)}=`;
  const pairs = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(start))?.slice(start.length);
}

/** @param maxAge in seconds; 0 removes it; undefined: until the browser is closed */
function setCookie(
  ctx: RequestContext,
  name: CookieName,
  value: string,
  { isSecure, maxAge }: { readonly isSecure: boolean; readonly maxAge?: number },
): void {
  const parts = [`${nameOf(name, isSecure)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  if (isSecure) parts.push('Secure');
  if (maxAge !== undefined) parts.push(`Max-Age=${maxAge}`);
  ctx.append('set-cookie', parts.join('; '));
}
