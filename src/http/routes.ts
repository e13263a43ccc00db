import type Router from '@koa/router';
import { ApiError, notFound } from '../domain/errors.ts';
import { entryOf, withoutFinalSlashes } from '../lib/text.ts';
import { gateway } from './operations/gateway-operations.ts';
import type { Operation } from './operations/operation.ts';
import type { AppMiddleware, RequestState } from './state.ts';

/** The last steps of operations, by their ids. */
export type Handlers<Id extends string> = Readonly<Record<Id, AppMiddleware | readonly AppMiddleware[]>>;

/** As the router writes a path: `{id}` is `:id`, or `*id` where its value may hold `/`. */
const routePath = ({ path, isOpenEnded = false }: Operation): string =>
  path.replaceAll(/\{(\w+)\}/g, isOpenEnded ? '*$1' : ':$1');

/**
 * Puts the route of each operation, from the same table that makes the OpenAPI document.
 * @param handlers of all of them: one that is missing or misspelt does not compile
 * @param stepsBefore of an operation, before its handler
 */
export function register<Id extends string>(
  router: Router<RequestState>,
  operations: readonly Operation<Id>[],
  handlers: Handlers<Id>,
  stepsBefore: (operation: Operation) => readonly AppMiddleware[] = () => [],
): void {
  for (const operation of operations) {
    const handler = entryOf(handlers, operation.id);
    if (handler === undefined) throw new Error(`The operation ${operation.id} has no handler.`);
    router[operation.method](routePath(operation), ...stepsBefore(operation), ...[handler].flat());
  }
}

/** 405 with `Allow` for a path that exists under other methods; OPTIONS is answered with the same list. */
export function methodNotAllowed(routers: readonly Router<RequestState>[]): AppMiddleware {
  return (ctx, next) => {
    const layers = routers.flatMap((router) => router.match(ctx.path, ctx.method).path);
    const methods = new Set(layers.flatMap((layer) => layer.methods));
    if (methods.size === 0 || methods.has(ctx.method)) return next();
    const allow = [...new Set([...methods, 'OPTIONS'])].sort().join(', ');
    if (ctx.method !== 'OPTIONS') {
      throw new ApiError(405, 'method_not_allowed', `${ctx.path} does not take ${ctx.method}.`, { headers: { allow } });
    }
    ctx.set('allow', allow);
    ctx.status = 204;
    return undefined;
  };
}

/** Paths that clients of other servers ask for, after the version: OpenAI, Anthropic, Google, Azure, Cohere, Ollama. */
const DOORS: ReadonlySet<string> = new Set([
  ...[
    'assistants',
    'audio',
    'batches',
    'chat',
    'complete',
    'completions',
    'containers',
    'conversations',
    'deployments',
  ],
  ...[
    'embed',
    'embeddings',
    'engines',
    'evals',
    'files',
    'fine-tunes',
    'fine_tuning',
    'generate',
    'images',
    'messages',
  ],
  ...[
    'models',
    'moderations',
    'realtime',
    'rerank',
    'responses',
    'tags',
    'threads',
    'uploads',
    'vector_stores',
    'videos',
  ],
]);

/** A step with which base URLs of clients end: `/v1`, `/v1/v1`, `/api/v1`, `/openai`. */
const BASE = /^(?:api|openai|v[0-9][a-z0-9]{0,9})$/i;

/** A path without those that it begins with; its last step stays. */
function withoutBases(path: string): string {
  let rest = path;
  for (;;) {
    const end = rest.indexOf('/', 1);
    if (end === -1 || !BASE.test(rest.slice(1, end))) return rest;
    rest = rest.slice(end);
  }
}

const SERVED = gateway.operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).join(', ');

const OF_CALLS: ReadonlySet<string> = new Set(gateway.operations.map(({ path }) => path));

/** A hint for a path of the gateway that is not there; empty: nobody could mean anything by it. */
function gatewayHint(path: string): string {
  if (path === '/v1/master' || path.startsWith('/v1/master/')) {
    return ' The master API has a listener of its own: MANAGEMENT_HOST and MANAGEMENT_PORT.';
  }
  const rest = withoutBases(withoutFinalSlashes(path));
  const meant = [`/v1${rest}`, rest].find((each) => OF_CALLS.has(each) && each !== path);
  if (meant === '/mcp') return ' The path of MCP is /mcp.';
  if (meant !== undefined) return ` The path is ${meant}: the base URL of an OpenAI client ends in /v1, once.`;
  return DOORS.has(rest.split(/[/:]/, 2)[1] ?? '') ? ` It is not served. There is: ${SERVED}.` : '';
}

/** Hint on the management listener, for calls that come there by mistake. */
const managementHint = (path: string): string =>
  DOORS.has(withoutBases(path).split(/[/:]/, 2)[1] ?? '') || path === '/mcp'
    ? ' This is the management listener. Calls go to the gateway: HOST and PORT.'
    : '';

/** 404 for a path at which nothing is, with a hint where clients of other servers have that path. */
export function nothingThere(listener: 'gateway' | 'management'): AppMiddleware {
  const hintOf = listener === 'gateway' ? gatewayHint : managementHint;
  return ({ path }) => {
    throw notFound(`There is nothing at ${path}.${hintOf(path)}`);
  };
}
