import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Principal } from '../core/authorize.ts';
import { rateLimitExceeded } from '../core/caller.ts';
import { ApiError, invalidRequest, permissionDenied } from '../domain/errors.ts';
import { SECRET_PREFIX } from '../domain/id.ts';
import { mcpResource, OAUTH_SCOPE } from '../domain/identity.ts';
import type { McpCaller, ReplyForm } from '../mcp/mcp-server.ts';
import { field } from '../mcp/tool.ts';
import type { AppContext } from './app-context.ts';
import { apiKeyToken, callContext, limitKey, principalOf, setPrincipal } from './authenticate.ts';
import { jsonBody } from './body.ts';
import type { GatewayId } from './operations/gateway-operations.ts';
import { hostKnower, isOurFault, oauthOrigin } from './pipeline.ts';
import type { Handlers } from './routes.ts';
import { type AppMiddleware, type FaultForm, loadPlaceOf, type RequestContext } from './state.ts';

/** Streams for notifications that one key can hold open at once. */
const MAX_STREAMS = 32;

/** `/mcp`: MCP over streamable HTTP (src/mcp/README.md, "MCP clients"). */
export function mcpHandlers(app: AppContext) {
  const streams = new Streams(app);
  const body = jsonBody(app.bodyLimits, app.telemetry);
  const faults = jsonRpcFaults(app);
  return {
    getMcp: [faults, ownOrigin(app), listenRoute(app, streams)],
    sendMcpMessage: [faults, ownOrigin(app), admit(app), body, messageRoute(app, streams)],
  } satisfies Partial<Handlers<GatewayId>>;
}

/** Parse error, invalid request and internal error of JSON-RPC; the HTTP status says more. */
function jsonRpcCode({ status, code }: ApiError): number {
  if (code === 'invalid_json') return -32700;
  return status >= 500 ? -32603 : -32600;
}

const idOf = (message: unknown): string | number | null => {
  const id = typeof message === 'object' && message !== null && 'id' in message ? message.id : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
};

/** Errors of HTTP are JSON-RPC errors whose `data` is what the error envelope holds elsewhere. */
const jsonRpcFaults =
  (app: AppContext): AppMiddleware =>
  (ctx, next) => {
    const form: FaultForm = {
      type: 'application/json',
      text: (error) =>
        JSON.stringify({
          jsonrpc: '2.0',
          id: idOf(ctx.state.body),
          error: { code: jsonRpcCode(error), message: error.message, data: error.envelope().error },
        }),
      headers: ({ status, code }): Record<string, string> =>
        status === 401 ? { 'www-authenticate': challenge(ctx, app, code) } : {},
    };
    ctx.state.faultForm = form;
    return next();
  };

/** A web page can call only from an origin of the gateway itself or of `ALLOWED_ORIGINS`. @throws ApiError 403 */
function ownOrigin({ gateway: { hosts, allowedOrigins } }: AppContext): AppMiddleware {
  const isKnownHost = hostKnower(hosts);
  const isOwn = (origin: string): boolean =>
    allowedOrigins.includes(origin) || isKnownHost(URL.parse(origin)?.hostname ?? '');
  return (ctx, next) => {
    const { origin } = ctx.req.headers;
    if (origin === undefined || isOwn(origin)) return next();
    throw permissionDenied('Web pages of this origin may not call the gateway. Add the origin to ALLOWED_ORIGINS.');
  };
}

/**
 * Leads to the authorization server (RFC 9728, section 5.1). Who sends a key of ours is not led away: clients would hide why it was
 * refused.
 */
function challenge({ req }: RequestContext, { gateway: { hosts } }: AppContext, code: string): string {
  const origin = oauthOrigin(req, hosts);
  const token = apiKeyToken(req);
  if (origin === undefined || (token !== undefined && isKey(req, token))) return 'Bearer';
  const parts = [
    // Another token would not help where the key behind it is disabled or spent.
    ...(code === 'invalid_token' ? ['error="invalid_token"'] : []),
    `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
    `scope="${OAUTH_SCOPE}"`,
  ];
  return `Bearer ${parts.join(', ')}`;
}

/** Whether it is a gateway key, well-formed or not, rather than an access token. */
const isKey = (req: IncomingMessage, token: string): boolean =>
  token.startsWith(SECRET_PREFIX.gateway) || req.headers.authorization === undefined;

/** @throws ApiError 401 */
function callerOf(req: IncomingMessage, app: AppContext): Promise<Principal> {
  const token = apiKeyToken(req);
  const origin = oauthOrigin(req, app.gateway.hosts);
  if (token === undefined || origin === undefined || isKey(req, token)) return app.authenticate(token);
  return app.authenticateToken(token, mcpResource(origin));
}

/** The key or access token becomes a principal that may call from its address. @throws ApiError 401, 403, 429, 503 */
function admit(app: AppContext): AppMiddleware {
  return async (ctx, next) => {
    setPrincipal(ctx, await callerOf(ctx.req, app));
    limitKey(ctx, app, 'mcp');
    await app.checkAddress({ principal: principalOf(ctx), clientIp: ctx.state.clientIp });
    return next();
  };
}

/** Whether the key may still be used from its address. */
async function isStillAdmitted({ req, state }: RequestContext, app: AppContext): Promise<boolean> {
  try {
    await app.checkAddress({ principal: await callerOf(req, app), clientIp: state.clientIp });
    return true;
  } catch {
    return false;
  }
}

/** JSON, unless the client asks for events alone or for both. Clients that name only one type, or none, get an answer too. */
function replyForm({ req }: RequestContext): ReplyForm {
  const accept = (req.headers.accept ?? '').toLowerCase();
  if (!accept.includes('text/event-stream')) return 'json';
  return accept.includes('application/json') ? 'either' : 'events';
}

/** Without `text/event-stream`: a sign of life that needs no key. With it: a stream for notifications, of which there are none. */
function listenRoute(app: AppContext, streams: Streams): AppMiddleware {
  const admitted = admit(app);
  return async (ctx) => {
    if (ctx.method === 'HEAD' || replyForm(ctx) === 'json') {
      ctx.body = { status: 'ok', name: 'portcullis', version: app.version };
      return;
    }
    await admitted(ctx, () => streams.hold(ctx, (ended) => waitForClose(ctx, ended, app)));
  };
}

/** Comments keep the stream open until it is ended or the gateway stops. */
async function waitForClose(ctx: RequestContext, ended: AbortSignal, app: AppContext): Promise<void> {
  const { res } = ctx;
  const closed = AbortSignal.any([ended, app.stopping]);
  ctx.respond = false;
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
  res.write(': open\n\n');
  const alive = setInterval(() => res.write(': keep-alive\n\n'), app.keepAliveMs);
  if (!closed.aborted) await once(closed, 'abort');
  clearInterval(alive);
  res.end();
}

/** Streams that wait for notifications, by key. */
class Streams {
  readonly #app: AppContext;
  readonly #open = new Map<string, number>();

  constructor(app: AppContext) {
    this.#app = app;
  }

  /**
   * Counts a stream until `work` ends, whose signal is aborted when the client leaves or its key may not be used any more.
   * @throws ApiError 429
   */
  async hold(ctx: RequestContext, work: (ended: AbortSignal) => Promise<void>): Promise<void> {
    const { keyId } = principalOf(ctx);
    const open = this.#open.get(keyId) ?? 0;
    if (open >= MAX_STREAMS) {
      throw new ApiError(429, 'rate_limit_exceeded', `This key has ${MAX_STREAMS} open MCP streams: close one first.`);
    }
    this.#open.set(keyId, open + 1);
    const refused = new AbortController();
    const check = async (): Promise<void> => {
      if (!(await isStillAdmitted(ctx, this.#app))) refused.abort();
    };
    const checks = setInterval(() => void check(), this.#app.keepAliveMs);
    try {
      await work(AbortSignal.any([ctx.state.signal, refused.signal]));
    } finally {
      clearInterval(checks);
      const left = (this.#open.get(keyId) ?? 1) - 1;
      if (left === 0) this.#open.delete(keyId);
      else this.#open.set(keyId, left);
    }
  }
}

/** The body as one JSON-RPC message; revisions that had lists of them are served without. @throws ApiError 400 */
function messageOf(body: unknown): object {
  if (typeof body !== 'object' || body === null || !('jsonrpc' in body) || body.jsonrpc !== '2.0') {
    throw invalidRequest('The request body must be one JSON-RPC 2.0 message.');
  }
  if (holdsMore(body, MAX_VALUES)) {
    throw invalidRequest(`The message holds more than ${MAX_VALUES} values besides the arguments of a tool.`);
  }
  return body;
}

/** Values of a message besides a tool's arguments. The SDK takes microseconds for each, and more where they are nested. */
const MAX_VALUES = 500;

/** Whether a message holds more values than so many, those in `params.arguments` not counted. */
function holdsMore(message: object, most: number): boolean {
  const args = field(field(message, 'params'), 'arguments');
  const open: object[] = [message];
  let values = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const value of Object.values(next)) {
      values += 1;
      if (values > most) return true;
      if (typeof value === 'object' && value !== null && value !== args) open.push(value);
    }
  }
  return false;
}

function messageRoute(app: AppContext, streams: Streams): AppMiddleware {
  return async (ctx) => {
    const message = messageOf(ctx.state.body);
    const mcp = await app.mcp();
    ctx.state.tool = mcp.toolOf(message);
    let refusal: ApiError | undefined;
    const caller: McpCaller = {
      principal: principalOf(ctx),
      context: callContext(ctx),
      takeRate: (endpoint) => takeRate(ctx, app, endpoint),
      borrow: (bytes) => loadPlaceOf(ctx).borrow(bytes),
      onFailure(error) {
        ctx.state.errorCode = error.code;
        if (isOurFault(error)) app.telemetry.failure(ctx.state.requestId, error);
        if (error.status === 401) refusal = error;
      },
    };
    const answer = async (ended: AbortSignal): Promise<void> => {
      const response = await mcp.answer(webRequest(ctx, ended), message, replyForm(ctx), caller);
      // A key that has reached its limit gets 401, as everywhere, as long as the status is still open.
      if (refusal !== undefined) throw refusal;
      await sendResponse(ctx, response, ended);
    };
    await (field(message, 'method') === 'subscriptions/listen' ? streams.hold(ctx, answer) : answer(ctx.state.signal));
  };
}

/** The limits of the endpoint whose work a tool does. Their headers would come too late for a stream. @throws ApiError 429 */
function takeRate(ctx: RequestContext, app: AppContext, endpoint: Parameters<McpCaller['takeRate']>[0]): void {
  const refused = app.rates.takeOf(endpoint, principalOf(ctx))?.refused;
  if (refused === undefined) return;
  app.telemetry.rateLimited(endpoint);
  throw rateLimitExceeded(refused);
}

/** The request as the SDK reads it: without its body, which is parsed already, and with an `Accept` that the SDK takes. */
function webRequest({ req }: RequestContext, signal: AbortSignal): Request {
  const headers = new Headers({ accept: 'application/json, text/event-stream', 'content-type': 'application/json' });
  for (const [name, value] of Object.entries(req.headers)) {
    if (name.startsWith('mcp-') && typeof value === 'string') headers.set(name, value);
  }
  return new Request('http://gateway/mcp', { method: 'POST', headers, signal });
}

async function sendResponse(ctx: RequestContext, response: Response, ended: AbortSignal): Promise<void> {
  const { status, headers, body } = response;
  const type = headers.get('content-type') ?? 'application/json';
  ctx.respond = false;
  if (body === null || !type.startsWith('text/event-stream')) {
    const text = await response.text();
    ctx.res.writeHead(status, {
      ...(text === '' ? {} : { 'content-type': type }),
      'content-length': Buffer.byteLength(text),
    });
    ctx.res.end(text);
    return;
  }
  ctx.res.writeHead(status, { 'content-type': type, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
  try {
    await pipeline(Readable.fromWeb(body), ctx.res);
  } catch (error) {
    if (!ended.aborted) throw error;
  }
}
