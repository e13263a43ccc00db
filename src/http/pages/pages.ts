import { timingSafeEqual } from 'node:crypto';
import type Router from '@koa/router';
import { csrfTokenOf, isSessionSecret, newSessionSecret } from '../../admin/sign-in/session-secret.ts';
import { readSession } from '../../admin/sign-in/sessions.ts';
import { ApiError, permissionDenied } from '../../domain/errors.ts';
import type { Pepper } from '../../domain/secret.ts';
import type { Clock } from '../../domain/time.ts';
import { touchSession } from '../../store/sign-in/sessions.ts';
import type { Store } from '../../store/store.ts';
import { type LimitRateDeps, limitRate } from '../middleware/rate-limit.ts';
import type { AppContext, AppMiddleware, RequestState } from '../state.ts';
import { readCookie, setCookie } from './cookies.ts';
import { type Form, parseForm } from './form.ts';
import { html, type SafeHtml } from './html.ts';
import { OwnOrigin } from './own-origin.ts';
import { PAGES, seeOther } from './page.ts';
import type { Session } from './session.ts';

export interface PagesDeps extends LimitRateDeps {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly clock: Clock;
  /** Accepted peppers, the current one first. */
  readonly peppers: readonly [Pepper, ...Pepper[]];
  /** Of this listener. */
  readonly publicUrl: string | undefined;
}

/** What pages for people are built with. To a browser each answers in HTML, whatever goes wrong. */
export interface Pages {
  get(path: string, ...steps: AppMiddleware[]): void;
  /** Counts each request against the rate of its address. */
  post(path: string, ...steps: AppMiddleware[]): void;
  readonly origin: OwnOrigin;
  /** Looked up once in a request. */
  currentSession(ctx: AppContext): Promise<Session | undefined>;
  /** Without a session: a page leads to sign-in and back, anything else is 401. `sessionOf` has it afterwards. */
  readonly requireSession: AppMiddleware;
  /** The form that was sent, from a page of ours and with its token. @throws ApiError 403, 413, 415, 400 */
  readForm(ctx: AppContext): Promise<Form>;
  /** The same check for a script's request, whose token is in the header `x-csrf-token`. @throws ApiError 403 */
  readonly checkScript: AppMiddleware;
  /** What every form that is sent by POST must hold. Gives who has no session a cookie for it. */
  csrfField(ctx: AppContext): Promise<SafeHtml>;
  /** The token itself, for a script. */
  csrfToken(ctx: AppContext): Promise<string>;
  /** Gives the browser a session that was begun; an empty secret takes it away. */
  setSession(ctx: AppContext, secret: string): void;
}

/** The use of a session is noted at most so often, in milliseconds. */
const NOTED_EVERY = 300_000;

/** The cookie is kept as long as the longest session. */
const COOKIE_SECONDS = 7 * 24 * 3600;

/** The session that `requireSession` found. */
export function sessionOf(ctx: AppContext): Session {
  const { session } = ctx.state;
  if (session === undefined || session === null) throw new Error('the page lacks its requireSession step');
  return session;
}

export const signedOut = (): ApiError =>
  new ApiError(401, 'not_signed_in', 'You are not signed in any more. Sign in, and try again.');

const outdated = (): ApiError => permissionDenied('This form is out of date. Load the page again, and send it then.');

function isSame(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The pages of one listener. Those that are put first are found first: fixed paths before patterns. */
export function createPages(router: Router<RequestState>, deps: PagesDeps): Pages {
  const { store, clock, peppers } = deps;
  const origin = new OwnOrigin(deps.publicUrl);
  const limit = limitRate(deps, 'sign_in');
  const limited: AppMiddleware = async (ctx, next) => {
    limit(ctx, ctx.state.network, 'address');
    return next();
  };

  async function find(ctx: AppContext): Promise<Session | undefined> {
    const secret = readCookie(ctx.req, 'portcullis_session', origin.isSecure(ctx.req));
    if (secret === undefined) return undefined;
    const now = clock.now();
    const found = await store.read((db) => readSession(db, secret, peppers, now));
    if (found === undefined) return undefined;
    const { id, organizationId, member, organizationName, lastUsedAt } = found;
    if (now - lastUsedAt >= NOTED_EVERY) await store.write((db) => touchSession(db, organizationId, id, now));
    return { id, member, organizationName, csrfToken: csrfTokenOf(secret) };
  }

  async function currentSession(ctx: AppContext): Promise<Session | undefined> {
    if (ctx.state.session === undefined) ctx.state.session = (await find(ctx)) ?? null;
    return ctx.state.session ?? undefined;
  }

  /** What tells one browser without a session from another; undefined: it has been given no form yet. */
  function visitor({ req }: AppContext): string | undefined {
    const secret = readCookie(req, 'portcullis_form', origin.isSecure(req)) ?? '';
    return isSessionSecret(secret) ? secret : undefined;
  }

  function newVisitor(ctx: AppContext): string {
    const secret = newSessionSecret();
    setCookie(ctx, 'portcullis_form', secret, { isSecure: origin.isSecure(ctx.req) });
    return secret;
  }

  const csrfToken = async (ctx: AppContext): Promise<string> =>
    (await currentSession(ctx))?.csrfToken ?? csrfTokenOf(visitor(ctx) ?? newVisitor(ctx));

  async function checkToken(ctx: AppContext, given: string): Promise<void> {
    const secret = visitor(ctx);
    const wanted = (await currentSession(ctx))?.csrfToken ?? (secret === undefined ? undefined : csrfTokenOf(secret));
    if (wanted === undefined || !isSame(given, wanted)) throw outdated();
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
