import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import cors from '@koa/cors';
import Router from '@koa/router';
import Koa from 'koa';
import type { RefusedRecorder } from '../admin/log/refused-recorder.ts';
import { toApiError } from '../core/authorize.ts';
import { refusedKeyOf } from '../core/caller.ts';
import { networkOf, clientAddress as resolveClientAddress, type TrustedProxies } from '../domain/address.ts';
import { ApiError, invalidRequest, notFound } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import { formatUsd } from '../domain/limits.ts';
import { UpstreamError } from '../providers/wire/upstream-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { AppContext, HostCheckOptions, ListenerContext } from './app-context.ts';
import { descriptionHandlers, healthHandlers } from './operational.ts';
import { COMMON } from './operations/operation.ts';
import { pageFaultForm } from './pages/html.ts';
import { methodNotAllowed, nothingThere, register } from './routes.ts';
import { departureOf, leaveUnread } from './server.ts';
import { type AppMiddleware, type Load, type RequestContext, RequestState } from './state.ts';

/** The parts that every listener uses. */
type PipelineContext = Pick<AppContext, 'telemetry' | 'readiness' | 'policyStatus' | 'trustedProxies'>;

/**
 * A listener's transport half: the steps before every route in their order, then the routes that `addRoutes` puts, and what both
 * listeners have. A router looks at all of its routes for each request, so those that are busy have one of their own, asked first.
 */
export function createApp(
  listener: 'gateway' | 'management',
  app: PipelineContext,
  { load, hosts, allowedOrigins, refused }: ListenerContext,
  addRoutes: (busy: Router<RequestState>, others: Router<RequestState>) => void,
): Koa<RequestState> {
  const { telemetry } = app;
  const busy = new Router<RequestState>();
  const others = new Router<RequestState>();
  register(others, COMMON, { ...healthHandlers(app), ...descriptionHandlers(listener) });
  addRoutes(busy, others);

  const koa = new Koa<RequestState>();
  koa.use(requestId).use(accessLog(telemetry, refused));
  if (allowedOrigins.length > 0) koa.use(crossOrigin(allowedOrigins));
  koa
    .use(errorEnvelope(telemetry))
    .use(query)
    .use(clientAddress(app.trustedProxies))
    .use(overload(load))
    .use(hostCheck(hosts))
    .use(decodablePath)
    .use(busy.routes())
    .use(others.routes())
    .use(methodNotAllowed([busy, others]))
    .use(nothingThere(listener));
  // Errors thrown past the envelope; a client that has reset its connection is not a failure.
  koa.on('error', (error: unknown, ctx?: RequestContext) => {
    if (ctx?.req.socket.destroyed !== true) telemetry.failure(ctx?.state.requestId ?? '', error);
  });
  return koa;
}

const WELL_FORMED = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Begins the request's state with an id of ours; the caller's own is kept next to it if it is well formed (src/http/README.md,
 * "Errors and hostile input").
 */
const requestId: AppMiddleware = (ctx, next) => {
  const id = newId('req');
  ctx.state = new RequestState(id, departureOf(ctx.req.socket));
  ctx.res.setHeader('x-request-id', id);
  const own = ctx.req.headers['x-request-id'];
  if (typeof own === 'string' && WELL_FORMED.test(own)) {
    ctx.state.clientRequestId = own;
    ctx.res.setHeader('x-client-request-id', own);
  }
  return next();
};

/** A caller who left before the answer began got none; the call's row has the same status and code. */
const CLIENT_LEFT = 499;

/** Outcome of the policy; undefined where it was not asked. */
const outcomeOf = ({ decisionId, reason }: RequestState): 'permit' | 'deny' | undefined => {
  if (decisionId === undefined) return undefined;
  return reason === undefined ? 'permit' : 'deny';
};

/** Records a request that ended with an error before it was a call. */
function noteRefusal(ctx: RequestContext, refused: RefusedRecorder, route: string | undefined): void {
  const { req, res, state, path } = ctx;
  const { fault, principal } = state;
  if (res.statusCode < 400 || state.callId !== undefined || ALWAYS_ANSWERED.has(path)) return;
  const refusedKey = fault === undefined ? undefined : refusedKeyOf(fault);
  refused.note({
    requestId: state.requestId,
    clientRequestId: state.clientRequestId,
    whose: principal ?? refusedKey?.whose,
    statusCode: res.statusCode,
    errorCode: state.errorCode,
    message: fault?.message,
    param: fault?.param,
    detail: refusedKey?.detail,
    method: req.method ?? '',
    path,
    route,
    body: state.body,
    clientAddress: state.clientIp,
    network: state.network,
    userAgent: req.headers['user-agent'],
  });
}

/**
 * Logs each request once, and gives back what it holds, when its connection is done with it: `close` comes for an aborted answer
 * too, Koa's `finish` does not. @param refused undefined: refused requests have no row
 */
function accessLog(telemetry: Telemetry, refused?: RefusedRecorder): AppMiddleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    res.on('close', () => {
      state.place?.closed();
      const route = typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : undefined;
      if (refused !== undefined && res.headersSent) noteRefusal(ctx, refused, route);
      telemetry.access(
        {
          requestId: state.requestId,
          method: req.method ?? '',
          path: ctx.path,
          status: res.headersSent ? res.statusCode : CLIENT_LEFT,
          durationMs: Math.round((performance.now() - state.arrivedAt) * 1000) / 1000,
          aborted: !res.writableFinished,
          clientIp: state.clientIp,
          keyId: state.principal?.keyId,
          masterKeyId: state.actor?.kind === 'master_key' ? state.actor.masterKeyId : undefined,
          memberId: state.session?.member.id,
          tool: state.tool,
          callId: state.callId,
          decisionId: state.decisionId,
          provider: state.target?.providerId,
          model: state.target?.modelId,
          outcome: outcomeOf(state),
          reason: state.reason,
          cost: state.cost === undefined ? undefined : formatUsd(state.cost),
          code: state.errorCode ?? (res.headersSent ? undefined : 'client_closed_request'),
        },
        route ?? 'other',
      );
    });
    return next();
  };
}

/** Headers of answers that a web page may read. */
const READABLE = [
  'retry-after',
  'www-authenticate',
  'x-cache',
  'x-decision-id',
  'x-dropped-parameters',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-request-id',
  'x-should-retry',
];

/**
 * Lets web pages of these origins call the gateway (CORS), each with a key of its own: no cookie is ever allowed. To all other
 * origins nothing is said, so that browsers refuse them.
 */
function crossOrigin(allowedOrigins: readonly string[]): AppMiddleware {
  const allowed = new Set(allowedOrigins);
  return cors({
    origin: ({ req }) => (allowed.has(req.headers.origin ?? '') ? (req.headers.origin ?? '') : ''),
    allowMethods: ['GET', 'POST'],
    exposeHeaders: READABLE,
    maxAge: 600,
  });
}

/**
 * The only catch in HTTP: every failure becomes the error envelope with all four keys. What failed inside is logged here, once;
 * a refusal for lack of room has no cause, and the access log tells of it.
 */
function errorEnvelope(telemetry: Telemetry): AppMiddleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false)
        throw notFound(`There is nothing at ${ctx.path}.`);
      ctx.state.place?.served(ctx.state.network);
    } catch (thrown) {
      answerFault(ctx, faultOf(ctx, thrown), telemetry);
    }
    if (!ctx.req.complete) await leaveUnread(ctx.req, ctx.res);
  };
}

/** Error to answer with: 503 if the caller has no place left, otherwise the one thrown. */
function faultOf({ state }: RequestContext, thrown: unknown): ApiError {
  try {
    state.place?.served(state.network);
  } catch (refusal) {
    return toApiError(refusal);
  }
  return toApiError(thrown);
}

function answerFault(ctx: RequestContext, error: ApiError, telemetry: Telemetry): void {
  if (isOurFault(error)) telemetry.failure(ctx.state.requestId, error);
  ctx.state.errorCode = error.code;
  ctx.state.fault = error;
  if (ctx.res.headersSent) {
    ctx.res.destroy();
    return;
  }
  ctx.status = error.status;
  const faultForm = ctx.state.faultForm ?? pageFaultForm(ctx);
  ctx.set({ ...error.headers, ...faultForm?.headers(error) });
  ctx.type = faultForm?.type ?? 'application/json';
  ctx.body = faultForm?.text(error) ?? JSON.stringify(error.envelope());
}

/** Something failed inside: the database, the policy, the code. */
export const isOurFault = ({ status, cause }: ApiError): boolean =>
  (status === 500 || status === 503) && cause !== undefined && !(cause instanceof UpstreamError);

const MAX_LENGTH = 8192;
const MAX_PARAMETERS = 64;

const AMPERSAND = '&'.charCodeAt(0);

function parametersOf(text: string): number {
  let parameters = 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === AMPERSAND) parameters += 1;
  return parameters;
}

/** @throws ApiError 431, 400 */
function parsed(text: string): URLSearchParams {
  if (text.length > MAX_LENGTH) {
    throw new ApiError(431, 'request_too_large', `The query of the request is longer than ${MAX_LENGTH} bytes.`);
  }
  if (parametersOf(text) > MAX_PARAMETERS) {
    throw invalidRequest(`The query of the request has more than ${MAX_PARAMETERS} parameters.`);
  }
  return new URLSearchParams(text);
}

/**
 * The query, parsed once, and only if it is bounded (src/http/README.md, "Rates and load"). Koa's own `ctx.query` must not be
 * used: it takes time with the square of the number of parameters.
 */
const query: AppMiddleware = (ctx, next) => {
  const url = ctx.req.url ?? '';
  const mark = url.indexOf('?');
  if (mark !== -1) ctx.state.query = parsed(url.slice(mark + 1));
  return next();
};

/** A path that cannot be decoded names nothing: 400, before the router would take it as it stands. */
const decodablePath: AppMiddleware = (ctx, next) => {
  try {
    if (ctx.path.includes('%')) decodeURIComponent(ctx.path);
  } catch {
    throw invalidRequest('The path of the request is not valid percent-encoding.');
  }
  return next();
};

/**
 * Determines whose address IP rules judge, null when that cannot be told, and which network counts as one caller. There the header
 * counts only if proxies are named: a caller who writes it would otherwise have as many shares as there are addresses.
 */
function clientAddress(trustedProxies: TrustedProxies | undefined): AppMiddleware {
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

/** Operators need these most when the gateway has too much to do; they hold nothing and wait for nothing. */
const ALWAYS_ANSWERED = new Set(['/health', '/ready', '/metrics']);

/**
 * Refuses what exceeds the bounds, of all or of this caller, before anything is done for it (src/http/README.md, "Rates and
 * load"). A request without a key counts for its address at once. A request that names a key counts for that key as soon as the
 * key is known, and for its address if the key is never known: a caller who fills the share of an address does not stop the keys
 * that are used there.
 */
function overload(load: Load): AppMiddleware {
  return (ctx, next) => {
    if (ALWAYS_ANSWERED.has(ctx.path)) return next();
    const place = load.enter();
    ctx.state.place = place;
    const { authorization, 'x-api-key': apiKey } = ctx.req.headers;
    if (authorization === undefined && apiKey === undefined) place.countForAddress(ctx.state.network);
    return next();
  };
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

const [ZERO, NINE] = [0x30, 0x39];

/** The host name of a `Host` header, lower-cased, without its port. */
function hostName(header: string): string {
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
