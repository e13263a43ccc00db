import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Actor } from '../admin/audit/audit-trail.ts';
import type { CallContext, Principal } from '../core/authorize.ts';
import { type Authenticate, type Rate, rateLimitExceeded, type Standing } from '../core/caller.ts';
import { type ApiError, invalidRequest, unauthorized } from '../domain/errors.ts';
import { hashSecret, isWellFormedSecret, kindOfSecret, type Pepper } from '../domain/id.ts';
import type { LimitedEndpoint } from '../domain/limits.ts';
import type { Database } from '../store/db/database.ts';
import { rehash } from '../store/secrets/rotate-secrets.ts';
import { type FoundMasterKey, findMasterKeyByHash, touchMasterKey } from '../store/tenants/master-key-records.ts';
import type { AppContext, ManagementContext } from './app-context.ts';
import { type AppMiddleware, loadPlaceOf, type RequestContext } from './state.ts';

/** The request counts for its organization and key from now on. @throws ApiError 503 */
export function setPrincipal(ctx: RequestContext, principal: Principal): void {
  ctx.state.principal = principal;
  loadPlaceOf(ctx).countForKey(principal.organizationId, principal.keyId);
}

/** Step 4 of the journey: the key, as bearer token or `x-api-key`, becomes a principal, or 401. */
export function authenticate(authenticateKey: Authenticate): AppMiddleware {
  return async (ctx, next) => {
    setPrincipal(ctx, await authenticateKey(apiKeyToken(ctx.req)));
    return next();
  };
}

/** The principal that `authenticate` left. */
export function principalOf(ctx: RequestContext): Principal {
  if (ctx.state.principal === undefined) throw new Error('the route lacks its authenticate step');
  return ctx.state.principal;
}

const isTrue = (header: string | string[] | undefined): boolean => header === 'true';

const META = 'x-portcullis-meta-';
const MAX_META = 16;
const MAX_META_LENGTH = 256;

/** Caller's metadata of the request. @throws ApiError 400 for too much */
function metaOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const given = Object.entries(headers).filter(([name]) => name.startsWith(META));
  const meta = Object.fromEntries(given.map(([name, value]) => [name.slice(META.length), String(value)]));
  const isTooLong = Object.entries(meta).some(([name, value]) => Math.max(name.length, value.length) > MAX_META_LENGTH);
  if (given.length > MAX_META || isTooLong) {
    throw invalidRequest(
      `At most ${MAX_META} headers ${META}… of at most ${MAX_META_LENGTH} characters are read.`,
      null,
    );
  }
  return meta;
}

/** Request data that the core needs; informs the caller of the decision, in headers, as soon as it is made. */
export function callContext(ctx: RequestContext): CallContext {
  const { state, req, res } = ctx;
  const place = loadPlaceOf(ctx);
  // A stream may have begun before, and then the headers are gone.
  const tell = (name: string, value: string): void => {
    if (!res.headersSent) res.setHeader(name, value);
  };
  return {
    requestId: state.requestId,
    clientRequestId: state.clientRequestId,
    arrivedAt: state.arrivedAt,
    receivingMs: state.receivingMs,
    ...(state.tool === undefined ? {} : { tool: state.tool }),
    clientIp: state.clientIp,
    signal: state.signal,
    noFallback: isTrue(req.headers['x-no-fallback']),
    noCache: isTrue(req.headers['x-no-cache']),
    findMeta: () => metaOf(req.headers),
    room: (bytes) => place.holdAnswer(bytes),
    onDecision(decisionId, policyRevision) {
      state.decisionId = decisionId;
      tell('x-decision-id', decisionId);
      tell('x-policy-revision', policyRevision);
    },
    onDenial(reason) {
      state.reason = reason;
    },
    onCall(callId) {
      state.callId = callId;
    },
    onDropped(fields) {
      if (fields.length > 0) tell('x-dropped-parameters', fields.join(', '));
    },
    onCacheHit() {
      tell('x-cache', 'HIT');
    },
    onEnd(target, cost) {
      state.target = target;
      state.cost = cost;
    },
  };
}

const SCHEME = 'bearer ';

/** Text after the scheme, without blanks around it; undefined for another scheme. */
const afterBearer = (header: string): string | undefined =>
  header.slice(0, SCHEME.length).toLowerCase() === SCHEME ? header.slice(SCHEME.length).trim() : undefined;

/**
 * Refuses a request whose credential is ambiguous: two lines of one header, or two headers that differ
 * (src/http/README.md, "Errors and hostile input"). Read from the raw lines, since Node drops a second `authorization` silently.
 */
function assertUnambiguous({ rawHeaders }: IncomingMessage): void {
  let bearer: string | undefined;
  let apiKey: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (is(name, 'authorization')) {
      if (bearer !== undefined) throw sentTwice('authorization');
      bearer = rawHeaders[i + 1] ?? '';
    } else if (is(name, 'x-api-key')) {
      if (apiKey !== undefined) throw sentTwice('x-api-key');
      apiKey = rawHeaders[i + 1] ?? '';
    }
  }
  if (bearer !== undefined && apiKey !== undefined && (afterBearer(bearer) ?? bearer) !== apiKey) {
    throw invalidRequest('The request has two different credentials.');
  }
}

/** Whether a header has this name, given in small letters. */
const is = (header: string | undefined, name: string): boolean =>
  header?.length === name.length && header.toLowerCase() === name;

const sentTwice = (header: string): ApiError => invalidRequest(`The request has more than one ${header} header.`);

/** The API key of a request, as bearer token or, where there is no `authorization`, as `x-api-key`. @throws ApiError 400 as below */
export function apiKeyToken(req: IncomingMessage): string | undefined {
  const token = bearerToken(req);
  const apiKey = req.headers['x-api-key'];
  if (req.headers.authorization !== undefined || typeof apiKey !== 'string') return token;
  return apiKey.trim() === '' ? undefined : apiKey.trim();
}

/** The bearer token of a request, or undefined when it has none. Throws 400 when the credential is ambiguous. */
export function bearerToken(req: IncomingMessage): string | undefined {
  assertUnambiguous(req);
  const token = afterBearer(req.headers.authorization ?? '');
  return token === '' || token?.includes(' ') ? undefined : token;
}

/** Time as OpenAI writes it there: `1s`, `6m0s`. */
function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}

const namesOf = (unit: Rate['unit']) => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  reset: `x-ratelimit-reset-${unit}`,
});
const HEADERS = { requests: namesOf('requests'), tokens: namesOf('tokens') };

function setHeaders({ res }: RequestContext, { unit, limit, remaining, resetMs }: Rate): void {
  const names = HEADERS[unit];
  res.setHeader(names.limit, String(limit));
  res.setHeader(names.remaining, String(remaining));
  res.setHeader(names.reset, duration(resetMs));
}

/** The parts that limit a rate. */
type RateDeps = Pick<AppContext, 'rates' | 'telemetry'>;

type MasterDeps = Pick<ManagementContext, 'store' | 'clock' | 'peppers' | 'rates' | 'telemetry'>;

/**
 * Tells in headers how the caller stands with the nearest limits (src/http/README.md, "Rates and load").
 * @throws ApiError 429 when one of them refuses the request
 */
function judge(ctx: RequestContext, { telemetry }: RateDeps, endpoint: LimitedEndpoint, standing: Standing): void {
  const { requests, tokens, refused } = standing;
  if (requests !== undefined) setHeaders(ctx, requests);
  if (tokens !== undefined) setHeaders(ctx, tokens);
  if (refused === undefined) return;
  telemetry.rateLimited(endpoint);
  throw rateLimitExceeded(refused);
}

/** Counts the request against the limit of an address or a master key. @throws ApiError 429 */
type LimitRate = (ctx: RequestContext, caller: string, scope: 'address' | 'master_key') => void;

export const limitRate =
  (app: RateDeps, endpoint: LimitedEndpoint): LimitRate =>
  (ctx, caller, scope) => {
    const standing = app.rates.take(endpoint, caller, scope);
    if (standing !== undefined) judge(ctx, app, endpoint, standing);
  };

/** Counts the authenticated request against the limits of its key and of those that the key belongs to. @throws ApiError 429 */
export function limitKey(ctx: RequestContext, app: RateDeps, endpoint: LimitedEndpoint): void {
  const standing = app.rates.takeOf(endpoint, principalOf(ctx));
  if (standing !== undefined) judge(ctx, app, endpoint, standing);
}

/** Step 5 of the journey: an authenticated caller may have asked too often. */
export const rateLimit =
  (app: RateDeps, endpoint: LimitedEndpoint): AppMiddleware =>
  (ctx, next) => {
    limitKey(ctx, app, endpoint);
    return next();
  };

/** The use of a key is noted at most so often, in milliseconds: a busy program must not turn every read into a write. */
const NOTED_EVERY = 60_000;

/** The actor that `authenticateMaster` found. */
export function actorOf(ctx: RequestContext): Actor {
  if (ctx.state.actor === undefined) throw new Error('the route lacks its authenticate step');
  return ctx.state.actor;
}

const NO_KEY = 'No master key was given: send `Authorization: Bearer <master key>`.';

/** The refusal of a token. The prefix shows a gateway key, so nothing is looked up. */
const refusalOf = (token: string): string =>
  kindOfSecret(token) === 'gateway'
    ? 'This is a gateway key: it is for calls. The master API needs a master key, which begins with `pclm_`.'
    : 'The master key is not valid.';

/**
 * The master key, as bearer token or `x-api-key`, becomes an actor with its maker's current role; anything else is 401 `invalid_api_key`. A request counts
 * against the rate of its master key, without a valid one against that of its address: guessing takes nothing from administrators.
 */
export function authenticateMaster(app: MasterDeps): AppMiddleware {
  const { store, clock, peppers } = app;
  const limit = limitRate(app, 'management');
  return async (ctx, next) => {
    const token = apiKeyToken(ctx.req);
    const found =
      token !== undefined && isWellFormedSecret(token, 'master')
        ? await store.read((db) => findByToken(db, token, peppers))
        : undefined;
    if (token === undefined || found === undefined) {
      limit(ctx, ctx.state.network, 'address');
      throw unauthorized('invalid_api_key', token === undefined ? NO_KEY : refusalOf(token));
    }
    const { lastUsedAt, outdatedHash, ...credential } = found;
    ctx.state.actor = { kind: 'master_key', ...credential };
    loadPlaceOf(ctx).countForKey(credential.organizationId, credential.masterKeyId);
    limit(ctx, credential.masterKeyId, 'master_key');
    if (outdatedHash !== undefined) {
      const { organizationId, masterKeyId: id } = credential;
      const outdated = { table: 'master_keys', organizationId, id, secretHash: outdatedHash } as const;
      await store.write((db) => rehash(db, outdated, token, peppers[0]));
    }
    if (lastUsedAt === null || clock.now() - lastUsedAt >= NOTED_EVERY) {
      await store.write((db, now) => touchMasterKey(db, credential.organizationId, credential.masterKeyId, now));
    }
    return next();
  };
}

/** For those who have no master key: the request counts against the rate of its address. @throws ApiError 429 */
export function limitAddress(app: RateDeps): AppMiddleware {
  const limit = limitRate(app, 'management');
  return async (ctx, next) => {
    limit(ctx, ctx.state.network, 'address');
    return next();
  };
}

/** A hash under an older pepper is to be renewed. */
type FoundByToken = FoundMasterKey & { readonly outdatedHash: string | undefined };

function findByToken(db: Database, token: string, peppers: readonly Pepper[]): FoundByToken | undefined {
  for (const pepper of peppers) {
    const secretHash = hashSecret(token, pepper);
    const found = findMasterKeyByHash(db, secretHash);
    if (found !== undefined) return { ...found, outdatedHash: pepper === peppers[0] ? undefined : secretHash };
  }
  return undefined;
}
