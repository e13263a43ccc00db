import { AsyncLocalStorage } from 'node:async_hooks';
import { generateKeyPairSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Configuration, errors, interactionPolicy, type KoaContextWithOIDC, Provider } from 'oidc-provider';
import { givesAccess } from '../admin/keys/oauth-grants.ts';
import { ApiError, invalidRequest } from '../domain/errors.ts';
import { clientHost, hashOAuthSecret, mcpResource, OAUTH_PATHS, OAUTH_SCOPE } from '../domain/identity.ts';
import type { Clock } from '../domain/time.ts';
import { plainText } from '../lib/text.ts';
import type { Database } from '../store/db/database.ts';
import { consumeOAuthItem } from '../store/sign-in/oauth.ts';
import type { Store } from '../store/store.ts';
import { DocumentFault, noRequest } from './oauth-requests.ts';
import { type Admission, runWrites, SqliteAdapter, type Write } from './sqlite-adapter.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Seconds. */
const LIFETIMES = {
  AccessToken: HOUR,
  ClientCredentials: HOUR,
  AuthorizationCode: 60,
  RefreshToken: 30 * DAY,
  Grant: 365 * DAY,
  Interaction: HOUR,
  Session: HOUR,
} as const;

export interface AuthorizationServerDeps {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly clock: Clock;
  /** Scheme, host and port at which clients reach the gateway. */
  readonly origin: string;
  /** Signs cookies. */
  readonly cookieKey: string;
  /** The page of a member's consent. @param id of the interaction */
  readonly consentPath: (id: string) => string;
  /** Shows a person what went wrong. */
  readonly showError: (
    ctx: Pick<KoaContextWithOIDC, 'status' | 'set' | 'type' | 'body'>,
    status: number,
    message: string,
  ) => void;
  readonly onFailure: (error: unknown) => void;
  /** Fetches the documents of clients that are named by the URL of their metadata, and nothing else. */
  readonly fetch: NonNullable<Configuration['fetch']>;
}

/** Request on its way through the provider, which calls back without naming the request. */
interface UnderWay {
  readonly admissions: Map<string, Admission>;
  readonly clientIds: WeakMap<IncomingMessage, string>;
  readonly pending: AsyncLocalStorage<Write[]>;
}

/** Consent that a member is asked for. */
export interface ConsentRequest {
  readonly id: string;
  readonly clientId: string;
  readonly clientName: string;
  /** Destination of the answer. */
  readonly redirectUri: string;
}

/**
 * OAuth 2.1 for MCP clients at one origin, by `oidc-provider`: codes with PKCE, refresh tokens that rotate, dynamic registration,
 * client credentials, revocation (src/mcp/README.md, "OAuth"). Tokens are opaque and stored hashed; what they may do is what
 * their key may do, looked up with each request.
 */
export class AuthorizationServer {
  readonly #provider: Provider;
  readonly #handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>;
  readonly #resource: string;
  readonly #store: AuthorizationServerDeps['store'];
  readonly #underWay: UnderWay = {
    admissions: new Map(),
    clientIds: new WeakMap(),
    pending: new AsyncLocalStorage(),
  };

  constructor(deps: AuthorizationServerDeps) {
    this.#store = deps.store;
    this.#resource = mcpResource(deps.origin);
    this.#provider = new Provider(deps.origin, configurationOf(deps, this.#resource, this.#underWay));
    // The gateway in front says which host and scheme: the caller's own words about them never arrive here.
    this.#provider.proxy = true;
    this.#provider.silent = true;
    this.#provider.on('server_error', (_, error) => deps.onFailure(error));
    this.#provider.Client.prototype.compareClientSecret = function compare(secret) {
      return this.clientSecret !== undefined && hashOAuthSecret(secret) === this.clientSecret;
    };
    this.#provider.use(writeTogether(deps, this.#underWay.pending));
    this.#handle = this.#provider.callback();
  }

  /** Answers a request to one of its endpoints. */
  handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    return this.#handle(req, res);
  }

  /** Answers a registration. @param admission what refuses the client refuses the registration */
  async register(req: IncomingMessage, res: ServerResponse, { registrant, admit }: Admission): Promise<void> {
    const { admissions, clientIds } = this.#underWay;
    const id = crypto.randomUUID();
    clientIds.set(req, id);
    admissions.set(id, {
      registrant,
      admit: (db, client, now) => {
        try {
          admit(db, client, now);
        } catch (error) {
          throw error instanceof ApiError ? refusedRegistration(error) : error;
        }
      },
    });
    try {
      await this.#handle(req, res);
    } finally {
      admissions.delete(id);
    }
  }

  /** Consent that the browser sending the request was led here to give; undefined: none, or it took too long. */
  async consentRequest(req: IncomingMessage, res: ServerResponse): Promise<ConsentRequest | undefined> {
    try {
      const { uid, params, result } = await this.#provider.interactionDetails(req, res);
      if (result !== undefined) return undefined;
      const client = await this.#provider.Client.find(String(params.client_id));
      if (client === undefined) return undefined;
      const { clientId, clientName } = client;
      const name = plainText(clientName ?? '').trim() || (clientHost(clientId) ?? clientId);
      return { id: uid, clientId, clientName: name, redirectUri: String(params.redirect_uri) };
    } catch (error) {
      if (error instanceof errors.SessionNotFound) return undefined;
      // Its metadata document was there before, and is not now.
      if (error instanceof errors.OIDCProviderError) throw invalidRequest(faultText(error, error.error_description));
      throw error;
    }
  }

  /**
   * The member allows it, once. @param bind makes the grant of this id stand for a key, in the same transaction
   * @returns where to lead the browser next @throws ApiError 404 when it was answered before
   */
  async allow(
    req: IncomingMessage,
    res: ServerResponse,
    { id, clientId }: ConsentRequest,
    memberId: string,
    bind: (db: Database, grantId: string, now: number) => void,
  ): Promise<string> {
    const grant = new this.#provider.Grant({ accountId: memberId, clientId });
    grant.addOIDCScope(OAUTH_SCOPE);
    grant.addResourceScope(this.#resource, OAUTH_SCOPE);
    const writes: Write[] = [];
    const grantId = await this.#underWay.pending.run(writes, () => grant.save());
    await this.#store.write((db, now) => {
      takeRequest(db, id, now);
      bind(db, grantId, now);
      return runWrites(writes, db, now);
    });
    const login = { accountId: memberId, remember: false };
    return this.#provider.interactionResult(req, res, { login, consent: { grantId } });
  }

  /** The member refuses, once. @returns where to lead the browser next @throws ApiError 404 when it was answered before */
  async refuse(req: IncomingMessage, res: ServerResponse, { id }: ConsentRequest): Promise<string> {
    await this.#store.write((db, now) => takeRequest(db, id, now));
    const refusal = { error: 'access_denied', error_description: 'The member refused.' };
    return this.#provider.interactionResult(req, res, refusal);
  }
}

function takeRequest(db: Database, id: string, now: number): void {
  if (!consumeOAuthItem(db, 'Interaction', hashOAuthSecret(id), now)) throw noRequest();
}

/** Why a client is not registered, as OAuth has it. */
function refusedRegistration({ status, message }: ApiError): errors.OIDCProviderError {
  if (status === 400) return new errors.InvalidClientMetadata(message);
  if (status === 401) return new errors.InvalidToken(message);
  const refused = new errors.TemporarilyUnavailable(message);
  return Object.assign(refused, { status, statusCode: status });
}

/** Requests that use something up: a code or a refresh token for tokens, a member's answer for a code. */
const usesUp = (path: string): boolean => path === OAUTH_PATHS.token || path.startsWith(`${OAUTH_PATHS.authorize}/`);

const USED = 'It was used before, or what it stands for has ended.';

/**
 * Makes the writes of a request that uses something up in one transaction, at its end: the provider asks whether a code was used, and
 * uses it up later, so that two requests of the same moment would both be given tokens. The one that comes second is given nothing.
 */
function writeTogether(
  { store, showError, onFailure }: AuthorizationServerDeps,
  pending: UnderWay['pending'],
): Parameters<Provider['use']>[0] {
  return async (ctx, next) => {
    if (!usesUp(ctx.path)) return next();
    const writes: Write[] = [];
    await pending.run(writes, next);
    if (writes.length === 0) return;
    try {
      if (await store.write((db, now) => runWrites(writes, db, now))) return;
      ctx.status = 400;
      ctx.body = { error: 'invalid_grant', error_description: USED };
    } catch (error) {
      onFailure(error);
      ctx.status = error instanceof ApiError ? error.status : 500;
      ctx.body = { error: 'server_error', error_description: 'The answer cannot be stored now. Try again.' };
    }
    ctx.remove('location');
    if (ctx.path !== OAUTH_PATHS.token) showError(ctx, ctx.status, USED);
  };
}

/** Each authorization asks the member: what they allowed before, and who was signed in before, allows nothing now. */
function alwaysAsk(): interactionPolicy.Prompt[] {
  const { Check, base } = interactionPolicy;
  const policy = base();
  policy
    .get('consent')
    ?.checks.add(
      new Check('always_ask', 'the member must consent', 'consent_required', ({ oidc }) =>
        oidc.result?.consent === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT,
      ),
      0,
    );
  return policy;
}

/** Fault of an application's request, for a person. */
function faultText(error: Error, description: string | undefined): string {
  const { cause, message } = error;
  if (error instanceof errors.InvalidClient && cause === undefined) {
    return 'This application is not known here: connect it again.';
  }
  if (cause instanceof DocumentFault) return `The application's request cannot be answered. ${cause.message}`;
  return `The application's request cannot be answered: ${description ?? message}.`;
}

/** `oidc-provider` looks for a client once more where it could not fetch its document: that is not done twice for one request. */
function fetchOnce(): (ctx: KoaContextWithOIDC | undefined) => boolean {
  const fetched = new WeakSet<KoaContextWithOIDC>();
  return (ctx) => {
    if (ctx === undefined) return true;
    const isFirst = !fetched.has(ctx);
    fetched.add(ctx);
    return isFirst;
  };
}

function configurationOf(deps: AuthorizationServerDeps, resource: string, underWay: UnderWay): Configuration {
  const { origin, store, consentPath, showError, cookieKey } = deps;
  const isHttps = origin.startsWith('https:');
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isHttps, signed: true } as const;
  async function resourceServer(ctx: KoaContextWithOIDC, wanted: string, client: { readonly clientId: string }) {
    if (wanted !== resource) throw new errors.InvalidTarget();
    // A client acts by itself only with the key that it was bound to (src/mcp/README.md, "OAuth").
    const isAlone = ctx.oidc.params?.grant_type === 'client_credentials';
    if (isAlone && !(await store.write((db, now) => givesAccess(db, client.clientId, now)))) {
      throw new errors.UnauthorizedClient('the client is not bound to a gateway key that may be used');
    }
    return { scope: OAUTH_SCOPE, audience: resource, accessTokenTTL: HOUR, accessTokenFormat: 'opaque' } as const;
  }
  return {
    adapter: (model: string) => new SqliteAdapter(model, { ...deps, ...underWay }),
    claims: {},
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    clientBasedCORS: () => true,
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: {
      keys: [cookieKey],
      names: { session: 'portcullis_oauth', interaction: 'portcullis_consent', resume: 'portcullis_resume' },
      long: cookie,
      short: cookie,
    },
    expiresWithSession: () => false,
    features: {
      clientCredentials: { enabled: true },
      clientIdMetadataDocument: {
        enabled: isHttps,
        ack: 'draft-02',
        allowFetch: fetchOnce(),
        cacheDuration: { min: MINUTE, max: DAY },
      },
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      registration: {
        enabled: true,
        initialAccessToken: false,
        issueRegistrationAccessToken: false,
        idFactory: ({ req }) => underWay.clientIds.get(req) ?? crypto.randomUUID(),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: resourceServer,
        useGrantedResource: () => true,
      },
      revocation: { enabled: true, allowedPolicy: (_, client, token) => client.clientId === token.clientId },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
    },
    fetch: deps.fetch,
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { policy: alwaysAsk(), url: (_, { uid }) => consentPath(uid) },
    // Nothing is signed: there are no ID tokens, and access tokens are opaque. The provider still wants a key.
    jwks: { keys: [generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })] },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    loadExistingGrant: async ({ oidc }) => {
      const grantId = oidc.result?.consent?.grantId;
      return grantId === undefined ? undefined : await oidc.provider.Grant.find(grantId);
    },
    pkce: { required: () => true },
    renderError: (ctx, { error_description: description }, error) =>
      showError(ctx, ctx.status, faultText(error, description)),
    responseTypes: ['code'],
    rotateRefreshToken: true,
    routes: {
      authorization: OAUTH_PATHS.authorize,
      token: OAUTH_PATHS.token,
      registration: OAUTH_PATHS.register,
      revocation: OAUTH_PATHS.revoke,
      jwks: OAUTH_PATHS.keys,
    },
    scopes: [OAUTH_SCOPE],
    ttl: LIFETIMES,
  };
}
