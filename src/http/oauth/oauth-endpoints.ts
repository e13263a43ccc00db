import { isUtf8 } from 'node:buffer';
import { IncomingMessage } from 'node:http';
import type Router from '@koa/router';
import { allowApplication } from '../../admin/keys/oauth-grants.ts';
import { ApiError, invalidRequest, notFound } from '../../domain/errors.ts';
import { hashSecret } from '../../domain/id.ts';
import { mcpResource, OAUTH_PATHS, OAUTH_SCOPE } from '../../domain/identity.ts';
import type { AuthorizationServer } from '../../oauth/authorization-server.ts';
import { authorizationParams, checkRoom, registrationOf, tokenParams } from '../../oauth/oauth-requests.ts';
import type { Admission } from '../../oauth/sqlite-adapter.ts';
import type { Registrant } from '../../store/sign-in/oauth.ts';
import { invalidKey } from '../../store/tenants/key-credential.ts';
import { findSecretEnd } from '../../store/tenants/key-records.ts';
import type { AppContext } from '../app-context.ts';
import { bearerToken, limitRate } from '../authenticate.ts';
import { assertBodyType, readBody } from '../body.ts';
import { NEEDS_PUBLIC_URL, oauthOrigin } from '../pipeline.ts';
import { type AppMiddleware, type FaultForm, loadPlaceOf, type RequestContext, type RequestState } from '../state.ts';

const MAX_BODY_BYTES = 65_536;

/** Web pages of every origin may read these, as the standards want: what they show is public, or asks for a secret of its own. */
const FOR_ALL_ORIGINS = { 'access-control-allow-origin': '*' };

/** The origin and its server. @throws ApiError 404 where OAuth is not served */
export async function serverFor(
  ctx: RequestContext,
  app: AppContext,
): Promise<{ readonly origin: string; readonly server: AuthorizationServer }> {
  const origin = oauthOrigin(ctx.req, app.gateway.hosts);
  if (origin === undefined) throw notFound(NEEDS_PUBLIC_URL);
  return { origin, server: await app.authorizationServer(origin) };
}

/** Discovery and the endpoints of OAuth, all by RFC 9728, 8414, 7591, 7009 and OAuth 2.1 (src/mcp/README.md, "OAuth"). */
export function oauthEndpoints(router: Router<RequestState>, app: AppContext): void {
  const limit = limitRate(app, 'oauth');
  const limited: AppMiddleware = async (ctx, next) => {
    limit(ctx, ctx.state.network, 'address');
    return next();
  };
  const forward: AppMiddleware = (ctx) => pass(ctx, app, { url: ctx.url });

  for (const path of ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']) {
    router.get(path, oauthFaults, (ctx) => showResource(ctx, app));
    router.options(path, preflight('GET'));
  }
  for (const path of [
    '/.well-known/oauth-authorization-server',
    '/.well-known/openid-configuration',
    OAUTH_PATHS.keys,
  ]) {
    router.get(path, oauthFaults, forward);
    router.options(path, preflight('GET'));
  }
  router.get(OAUTH_PATHS.authorize, oauthFaults, limited, (ctx) =>
    pass(ctx, app, { url: `${OAUTH_PATHS.authorize}?${authorizationParams(ctx.state.query)}` }),
  );
  router.get(`${OAUTH_PATHS.authorize}/:id`, oauthFaults, limited, forward);
  for (const path of [OAUTH_PATHS.token, OAUTH_PATHS.revoke]) {
    router.post(path, oauthFaults, limited, async (ctx) => {
      const params = tokenParams(new URLSearchParams(await readText(ctx, 'application/x-www-form-urlencoded')));
      await pass(ctx, app, { url: path, body: String(params) });
    });
    router.options(path, preflight('POST'));
  }
  router.post(OAUTH_PATHS.register, oauthFaults, limited, (ctx) => registerClient(ctx, app));
  router.options(OAUTH_PATHS.register, preflight('POST'));
}

/**
 * Requests that a web page of any origin may send. The authorization server's own answer is 404 for anything that is not quite
 * a preflight.
 */
const preflight =
  (methods: string): AppMiddleware =>
  (ctx) => {
    ctx.set({
      ...FOR_ALL_ORIGINS,
      'access-control-allow-methods': methods,
      'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
      'access-control-max-age': '3600',
    });
    ctx.status = 204;
  };

/** Errors as OAuth has them (RFC 6749, section 5.2). */
const oauthFaults: AppMiddleware = (ctx, next) => {
  const form: FaultForm = {
    type: 'application/json',
    text: (error) => JSON.stringify({ error: oauthCode(error), error_description: error.message }),
    headers: ({ status }): Record<string, string> => ({
      ...FOR_ALL_ORIGINS,
      'cache-control': 'no-store',
      ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    }),
  };
  ctx.state.faultForm = form;
  return next();
};

function oauthCode({ status, code }: ApiError): string {
  if (status === 401) return 'invalid_token';
  if (status === 429 || status >= 500) return 'temporarily_unavailable';
  return code === 'invalid_client_metadata' ? code : 'invalid_request';
}

/** RFC 9728: which authorization server gives tokens for the MCP endpoint. */
function showResource(ctx: RequestContext, { gateway: { hosts } }: AppContext): void {
  const origin = oauthOrigin(ctx.req, hosts);
  if (origin === undefined) throw notFound(NEEDS_PUBLIC_URL);
  ctx.set({ ...FOR_ALL_ORIGINS, 'cache-control': 'max-age=3600' });
  ctx.body = {
    resource: mcpResource(origin),
    resource_name: 'Portcullis',
    authorization_servers: [origin],
    scopes_supported: [OAUTH_SCOPE],
    bearer_methods_supported: ['header'],
  };
}

async function readText(ctx: RequestContext, type: string): Promise<string> {
  const { req, res } = ctx;
  assertBodyType(req, type);
  const bytes = await readBody(req, res, loadPlaceOf(ctx), MAX_BODY_BYTES);
  if (!isUtf8(bytes)) throw invalidRequest('The request body is not UTF-8.');
  return bytes.toString('utf8');
}

/** RFC 7591. With a gateway key as bearer, a client that acts by itself acts with that key. */
async function registerClient(ctx: RequestContext, app: AppContext): Promise<void> {
  const registration = registrationOf(parsed(await readText(ctx, 'application/json')));
  if (typeof registration === 'string') throw new ApiError(400, 'invalid_client_metadata', registration);
  const { metadata, actsByItself } = registration;
  const token = bearerToken(ctx.req);
  const principal = token === undefined ? undefined : await app.authenticate(token);
  ctx.set(FOR_ALL_ORIGINS);
  const registrant: Registrant = principal === undefined ? `network:${ctx.state.network}` : `key:${principal.keyId}`;
  const admission: Admission = {
    registrant,
    admit(db, { id, name }, now) {
      checkRoom(db, registrant, now);
      if (token === undefined || principal === undefined || !actsByItself) return;
      const { keyId, memberId, organizationId } = principal;
      const hashes = app.peppers.map((pepper) => hashSecret(token, pepper));
      const secretEndsAt = findSecretEnd(db, organizationId, keyId, hashes, now);
      // It was rolled since it was looked up.
      if (secretEndsAt === undefined) throw invalidKey();
      const person = { kind: 'person', memberId, organizationId } as const;
      allowApplication(db, person, { id, keyId, clientId: id, clientName: name, secretEndsAt }, now);
    },
  };
  await pass(ctx, app, { url: OAUTH_PATHS.register, body: JSON.stringify(metadata), admission });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidRequest('The request body is not valid JSON.');
  }
}

/** Hands a request on to the authorization server, which answers it. */
async function pass(
  ctx: RequestContext,
  app: AppContext,
  sent: { readonly url: string; readonly body?: string; readonly admission?: Admission },
): Promise<void> {
  const { origin, server } = await serverFor(ctx, app);
  const request = innerRequest(ctx.req, new URL(origin), sent);
  ctx.respond = false;
  try {
    if (sent.admission === undefined) await server.handle(request, ctx.res);
    else await server.register(request, ctx.res, sent.admission);
  } catch (error) {
    ctx.respond = true;
    throw error;
  }
}

/**
 * The request as the authorization server reads it: under the gateway's own name, whatever the caller says, and with the body that
 * was read already.
 */
function innerRequest(
  req: IncomingMessage,
  { host, protocol }: URL,
  { url, body = '' }: { readonly url: string; readonly body?: string },
): IncomingMessage {
  const inner = new IncomingMessage(req.socket);
  const { 'transfer-encoding': _chunked, 'x-forwarded-host': _host, expect: _expect, ...headers } = req.headers;
  inner.method = req.method ?? 'GET';
  inner.url = url;
  inner.httpVersion = req.httpVersion;
  inner.headers = {
    ...headers,
    host,
    'x-forwarded-proto': protocol.slice(0, -1),
    'content-length': String(Buffer.byteLength(body)),
    // Its errors would be pages otherwise for who names HTML: those are for browsers that are led to it.
    ...(req.method === 'POST' ? { accept: 'application/json' } : {}),
  };
  inner.push(body);
  inner.push(null);
  // Otherwise its end would close the connection.
  inner.complete = true;
  return inner;
}
