import { createHmac } from 'node:crypto';
import manifest from '../package.json' with { type: 'json' };
import type { RefusedRecorder } from './admin/log/refused-recorder.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { createDocuments } from './core/authorize.ts';
import type { UnnamedModels } from './core/auto.ts';
import { createAuthenticate, createAuthenticateToken, type Rates } from './core/caller.ts';
import { ResponseCache } from './core/chat-answer.ts';
import { checkEnvironment, environmentAccesses } from './core/check-providers.ts';
import { createListModels } from './core/list-models.ts';
import { createFindReach, Health } from './core/reach.ts';
import { createCheckAddress, createFindReachable } from './core/reachable.ts';
import { createAnswers } from './core/target-exchange.ts';
import type { Clock } from './domain/time.ts';
import { createGatewayApp } from './http/gateway-app.ts';
import { consentPath, showOAuthError } from './http/oauth/consent-page.ts';
import { Load } from './http/state.ts';
import { type Closers, getOrMake } from './lib/collections.ts';
import { imageTools } from './mcp/image-tools.ts';
import type { McpServer, PrepareMcp } from './mcp/mcp-server.ts';
import { chatTool, modelTools } from './mcp/model-tools.ts';
import { prepareUploads } from './mcp/preview.ts';
import { createLookUps } from './net/address-policy.ts';
import { createTransport } from './net/transport.ts';
import type { AuthorizationServer } from './oauth/authorization-server.ts';
import { loadAuthorizationServer } from './oauth/load-authorization-server.ts';
import { createFetchDocument, DOCUMENT_BOUNDS } from './oauth/oauth-requests.ts';
import { createActivePolicy, type PolicyInForce } from './policy/pdp.ts';
import { createProviders } from './providers/providers.ts';
import type { Sandbox } from './providers/sandbox/sandbox.ts';
import { createTokenEstimator } from './providers/tokens/token-estimate.ts';
import type { ServerSecrets } from './store/secrets/secrets.ts';
import type { CanRecord, Store } from './store/store.ts';
import type { Telemetry } from './telemetry/telemetry.ts';

export interface GatewayDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly secrets: ServerSecrets;
  readonly telemetry: Telemetry;
  readonly store: Store;
  readonly catalog: Catalog;
  readonly sandbox: Sandbox | undefined;
  readonly rates: Rates;
  readonly unnamedModels: UnnamedModels;
  readonly canRecord: CanRecord;
  readonly refused: RefusedRecorder | undefined;
  /** Policy by which it begins to decide. */
  readonly policy: PolicyInForce;
  /** Aborted when the product stops. */
  readonly stopping: AbortSignal;
  readonly prepareMcp?: PrepareMcp | undefined;
}

/** All that serves callers but the socket: authenticates, decides, calls providers. */
export interface Gateway {
  readonly app: ReturnType<typeof createGatewayApp>;
  readonly load: Load;
  /** Why no more requests should come; undefined: they may. */
  readiness(): Promise<string | undefined>;
  /** Tries the credentials of the environment, in the background. */
  checkProviders(): Promise<void>;
  /** Takes other credentials and addresses of providers, from the next call on. */
  renewProviders(config: Pick<Config, 'upstreams' | 'serviceProviders'>): void;
  /** The next decision is made by this policy. */
  activate(next: PolicyInForce): void;
  cacheEntries(): number;
  cacheBytes(): number;
  restingTargets(): number;
}

/** @param closers learn how to undo it */
export async function createGateway(deps: GatewayDeps, closers: Closers): Promise<Gateway> {
  const { config, clock, telemetry, store, catalog, rates, canRecord, stopping, prepareMcp } = deps;
  const { peppers, encryptionKeys, signingKey } = deps.secrets;
  const policy = createActivePolicy(deps.policy);
  closers.add(() => policy.pdp().close());
  const { timeouts, limits } = config;
  const answers = createAnswers();
  closers.add(() => answers.close());
  const lookUps = createLookUps(timeouts.connect);
  const transport = createTransport({
    connectTimeoutMs: timeouts.connect,
    firstByteTimeoutMs: timeouts.firstByte,
    idleTimeoutMs: timeouts.idle,
    totalTimeoutMs: timeouts.total,
    maxResponseBytes: limits.responseBytes,
    parseLarge: answers.parse,
    privateExceptions: config.allowPrivateUpstreams,
    lookUps,
  });
  closers.add(() => transport.close());
  const providers = createProviders({
    sandbox: deps.sandbox,
    upstreams: config.upstreams,
    serviceProviders: config.serviceProviders,
    pepper: peppers[0],
  });

  const documents = createDocuments(store);
  const { pdp } = policy;
  const authenticate = createAuthenticate({ store, clock, peppers });
  const findReach = createFindReach({ store, providers, encryptionKeys, telemetry });
  const findReachable = createFindReachable({ catalog, findReach, documents, pdp });
  const health = new Health(clock);
  const estimator = createTokenEstimator();
  closers.add(() => estimator.close());
  const cache = new ResponseCache(clock, limits.cacheBytes);
  const calls = {
    store,
    telemetry,
    rates,
    clock,
    catalog,
    documents,
    pdp,
    findReach,
    findReachable,
    health,
    transport,
    answers,
    estimator,
    cache,
    totalTimeoutMs: timeouts.total,
    defaultMaxOutputTokens: config.defaultMaxOutputTokens,
    minOutputTokens: config.minOutputTokens,
    defaultImageModel: deps.unnamedModels.image,
    moderationModel: deps.unnamedModels.moderation,
  };
  const listModels = createListModels({
    catalog,
    findReach,
    findReachable,
    clock,
    moderationModel: deps.unnamedModels.moderation,
    telemetry,
  });

  const uploadDir = config.uploadDir === undefined ? undefined : prepareUploads(config.uploadDir);
  async function loadMcp(): Promise<McpServer> {
    const { createMcpServer } = await import('./mcp/mcp-server.ts');
    const { nanoBananaModel } = config;
    return createMcpServer({
      tools: [chatTool(calls), ...imageTools({ ...calls, nanoBananaModel, uploadDir }), ...modelTools(listModels)],
      version: manifest.version,
      keepAliveMs: timeouts.keepAliveComment,
      closing: stopping,
      prepare: prepareMcp,
    });
  }
  let loadedMcp: Promise<McpServer> | undefined;

  // Connections of its own: what anyone can name must not displace those to providers.
  const documentTransport = createTransport({
    ...DOCUMENT_BOUNDS,
    parseLarge: answers.parse,
    privateExceptions: config.allowPrivateClients,
    lookUps,
  });
  closers.add(() => documentTransport.close());
  const fetchDocument = createFetchDocument(documentTransport);
  const cookieKey = createHmac('sha256', signingKey.key).update('oauth cookies').digest('base64url');
  const authorizationServerOf = (origin: string): Promise<AuthorizationServer> =>
    loadAuthorizationServer({
      origin,
      store,
      clock,
      cookieKey,
      consentPath,
      showError: showOAuthError,
      onFailure: (error) => telemetry.failure('', error),
      fetch: fetchDocument,
    });
  // One, or one for each name of loopback.
  const authorizationServers = new Map<string, Promise<AuthorizationServer>>();

  const load = new Load({ maxInFlight: limits.inFlight, maxBufferedBytes: limits.bufferedBytes });
  const readiness = async (): Promise<string | undefined> => {
    if (stopping.aborted) return 'stopping';
    if (load.isFull() || telemetry.isLate()) return 'overloaded';
    return (await canRecord()) ? undefined : 'cannot_record';
  };
  const app = createGatewayApp({
    ...calls,
    peppers,
    authenticate,
    listModels,
    mcp() {
      loadedMcp ??= loadMcp();
      return loadedMcp;
    },
    authenticateToken: createAuthenticateToken({ store, clock }),
    authorizationServer: (origin) => getOrMake(authorizationServers, origin, () => authorizationServerOf(origin)),
    closing: stopping,
    checkAddress: createCheckAddress({ store, documents, pdp }),
    version: manifest.version,
    telemetry,
    load,
    readiness,
    policyStatus: policy.status,
    hosts: hostsOf(config, config.gateway.host),
    allowedOrigins: config.allowedOrigins,
    trustedProxies: config.trustedProxies ?? undefined,
    bodyLimits: bodyLimitsOf(config),
    keepAliveMs: timeouts.keepAliveComment,
    metadataForm: config.metadataForm,
    refused: deps.refused,
  });
  return {
    app,
    renewProviders: providers.renew,
    load,
    readiness,
    checkProviders: () => checkEnvironment(environmentAccesses(config, providers), { transport, telemetry, stopping }),
    activate: policy.activate,
    cacheEntries: () => cache.entries,
    cacheBytes: () => cache.bytes,
    restingTargets: () => health.resting(),
  };
}

/** The names of a listener that is bound to `boundHost`. */
export const hostsOf = ({ publicUrl, allowedHosts }: Config, boundHost: string) => ({
  publicUrl,
  allowedHosts,
  boundHost,
});

export const bodyLimitsOf = ({ limits }: Config) => ({
  bytes: limits.bodyBytes,
  depth: limits.depth,
  values: limits.jsonValues,
  fields: limits.jsonFields,
});

export const listenTimesOf = ({ timeouts }: Config) => ({
  headersTimeoutMs: timeouts.requestHeaders,
  bodyTimeoutMs: timeouts.requestBody,
  stallTimeoutMs: timeouts.idle,
});
