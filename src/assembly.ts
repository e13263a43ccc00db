import { createHmac } from 'node:crypto';
import manifest from '../package.json' with { type: 'json' };
import { createLogReader } from './admin/log/log-reader.ts';
import type { RefusedRecorder } from './admin/log/refused-recorder.ts';
import { createUsageReporter } from './admin/usage/usage-query.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { servedProviders } from './config/upstreams.ts';
import { createDocuments } from './core/authorize.ts';
import type { UnnamedModels } from './core/auto.ts';
import { createAuthenticate, createAuthenticateToken, Rates } from './core/caller.ts';
import { ResponseCache } from './core/chat-answer.ts';
import type { CoreContext } from './core/core-context.ts';
import { createListModels } from './core/list-models.ts';
import { createFindReach, Health } from './core/reach.ts';
import { createCheckAddress, createFindReachable } from './core/reachable.ts';
import { createAnswers } from './core/target-exchange.ts';
import type { Clock } from './domain/time.ts';
import type { AppContext, ListenerContext } from './http/app-context.ts';
import { consentPath, showOAuthError } from './http/oauth/consent-page.ts';
import { Load } from './http/state.ts';
import { type Closers, getOrMake } from './lib/collections.ts';
import { imageTools } from './mcp/image-tools.ts';
import type { McpServer, PrepareMcp } from './mcp/mcp-server.ts';
import { chatTool, modelTools } from './mcp/model-tools.ts';
import { prepareUploads } from './mcp/preview.ts';
import { createLookUps, type LookUps } from './net/address-policy.ts';
import { createTransport } from './net/transport.ts';
import type { AuthorizationServer } from './oauth/authorization-server.ts';
import { loadAuthorizationServer } from './oauth/load-authorization-server.ts';
import { createFetchDocument, DOCUMENT_BOUNDS } from './oauth/oauth-requests.ts';
import { createActivePolicy, type PolicyInForce } from './policy/pdp.ts';
import type { Providers } from './providers/providers.ts';
import { createProviders } from './providers/providers.ts';
import type { Sandbox } from './providers/sandbox/sandbox.ts';
import { createTokenEstimator } from './providers/tokens/token-estimate.ts';
import { databasePath } from './store/db/data-dir.ts';
import type { DatabaseThread } from './store/db/database-thread.ts';
import type { ServerSecrets } from './store/secrets/secrets.ts';
import { createRecordingCheck, type Store } from './store/store.ts';
import type { Telemetry } from './telemetry/telemetry.ts';
import { createAnalyst } from './workbench/analysis/analyst.ts';
import type { PolicyKeeper } from './workbench/bundles/policy-keeper.ts';

/** The parts that are there before the doors are. */
interface Foundation {
  readonly config: Config;
  readonly clock: Clock;
  readonly secrets: ServerSecrets;
  readonly telemetry: Telemetry;
  readonly store: Store;
  readonly catalog: Catalog;
  readonly sandbox: Sandbox | undefined;
  readonly unnamedModels: UnnamedModels;
  readonly refused: RefusedRecorder | undefined;
  readonly policy: PolicyKeeper;
  /** The thread that reads the database for reports and the log. */
  readonly reader: DatabaseThread;
  /** Aborted when the product stops. */
  readonly stopping: AbortSignal;
  readonly metricsToken: () => string | undefined;
  readonly prepareMcp: PrepareMcp | undefined;
}

interface Assembly {
  readonly app: AppContext;
  readonly providers: Providers;
  /** The next decision is made by this policy. */
  activate(next: PolicyInForce): void;
}

/** Makes the context of the doors, the one object in which every part of the process has its line. @param closers learn how to undo it */
export function assemble(foundation: Foundation, closers: Closers): Assembly {
  const { config, clock, secrets, telemetry, store, catalog, policy, reader, stopping } = foundation;
  const { peppers, encryptionKeys } = secrets;
  const providers = createProviders({
    sandbox: foundation.sandbox,
    upstreams: config.upstreams,
    serviceProviders: config.serviceProviders,
    pepper: peppers[0],
  });
  const activePolicy = createActivePolicy(policy.inForce());
  closers.add(() => activePolicy.pdp().close());
  const lookUps = createLookUps(config.timeouts.connect);
  const core = createCore(foundation, { providers, pdp: activePolicy.pdp, lookUps }, closers);
  const listModels = createListModels(core);
  const bundle = () => policy.inForce().bundle;
  const analyst = createAnalyst({
    databasePath: databasePath(config.dataDir),
    catalog,
    bundle,
    servedProviders: servedProviders(config),
    clock,
  });
  closers.add(() => analyst.close());
  const listeners = listenersOf(foundation);
  const canRecord = createRecordingCheck(store, clock);
  const app: AppContext = {
    ...core,
    ...listeners,
    version: manifest.version,
    stopping,
    async readiness() {
      if (stopping.aborted) return 'stopping';
      if (listeners.gateway.load.isFull() || telemetry.isLate()) return 'overloaded';
      return (await canRecord()) ? undefined : 'cannot_record';
    },
    policy,
    policyStatus: activePolicy.status,
    bodyLimits: bodyLimitsOf(config),
    trustedProxies: config.trustedProxies ?? undefined,
    keepAliveMs: config.timeouts.keepAliveComment,
    metadataForm: config.metadataForm,
    peppers,
    encryptionKeys,
    allowPrivateUpstreams: config.allowPrivateUpstreams,
    authenticate: createAuthenticate({ store, clock, peppers }),
    authenticateToken: createAuthenticateToken({ store, clock }),
    checkAddress: createCheckAddress(core),
    listModels,
    mcp: mcpLoader(foundation, core, listModels),
    authorizationServer: authorizationServers(foundation, core, lookUps, closers),
    analyst,
    usageReporter: createUsageReporter(reader),
    logReader: createLogReader(reader),
    metricsToken: foundation.metricsToken,
  };
  return { app, providers, activate: activePolicy.activate };
}

interface CoreParts {
  readonly providers: Providers;
  readonly pdp: CoreContext['pdp'];
  readonly lookUps: LookUps;
}

function createCore(foundation: Foundation, { providers, pdp, lookUps }: CoreParts, closers: Closers): CoreContext {
  const { config, clock, secrets, telemetry, store, catalog, unnamedModels } = foundation;
  const { timeouts, limits } = config;
  const answers = createAnswers();
  closers.add(() => answers.close());
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
  const estimator = createTokenEstimator();
  closers.add(() => estimator.close());
  const documents = createDocuments(store);
  const findReach = createFindReach({ store, providers, encryptionKeys: secrets.encryptionKeys, telemetry });
  return {
    store,
    clock,
    telemetry,
    catalog,
    pdp,
    documents,
    rates: new Rates(config.rateLimits),
    findReach,
    findReachable: createFindReachable({ catalog, findReach, documents, pdp }),
    health: new Health(clock),
    transport,
    answers,
    estimator,
    cache: new ResponseCache(clock, limits.cacheBytes),
    totalTimeoutMs: timeouts.total,
    defaultMaxOutputTokens: config.defaultMaxOutputTokens,
    minOutputTokens: config.minOutputTokens,
    defaultImageModel: unnamedModels.image,
    moderationModel: unnamedModels.moderation,
  };
}

function mcpLoader(foundation: Foundation, core: CoreContext, listModels: AppContext['listModels']): AppContext['mcp'] {
  const { config, stopping, prepareMcp } = foundation;
  const { nanoBananaModel, timeouts } = config;
  const uploadDir = config.uploadDir === undefined ? undefined : prepareUploads(config.uploadDir);
  let loaded: Promise<McpServer> | undefined;
  const load = async (): Promise<McpServer> => {
    const { createMcpServer } = await import('./mcp/mcp-server.ts');
    return createMcpServer({
      tools: [chatTool(core), ...imageTools(core, { nanoBananaModel, uploadDir }), ...modelTools(listModels)],
      version: manifest.version,
      keepAliveMs: timeouts.keepAliveComment,
      closing: stopping,
      prepare: prepareMcp,
    });
  };
  return () => {
    loaded ??= load();
    return loaded;
  };
}

function authorizationServers(
  { config, clock, secrets, telemetry, store }: Foundation,
  { answers }: CoreContext,
  lookUps: LookUps,
  closers: Closers,
): AppContext['authorizationServer'] {
  // Connections of its own: what anyone can name must not displace those to providers.
  const transport = createTransport({
    ...DOCUMENT_BOUNDS,
    parseLarge: answers.parse,
    privateExceptions: config.allowPrivateClients,
    lookUps,
  });
  closers.add(() => transport.close());
  const fetchDocument = createFetchDocument(transport);
  const cookieKey = createHmac('sha256', secrets.signingKey.key).update('oauth cookies').digest('base64url');
  // One, or one for each name of loopback.
  const loaded = new Map<string, Promise<AuthorizationServer>>();
  return (origin) =>
    getOrMake(loaded, origin, () =>
      loadAuthorizationServer({
        origin,
        store,
        clock,
        cookieKey,
        consentPath,
        showError: showOAuthError,
        onFailure: (error) => telemetry.failure('', error),
        fetch: fetchDocument,
      }),
    );
}

function listenersOf({ config, refused }: Foundation): Pick<AppContext, 'gateway' | 'management'> {
  const { limits, publicUrl, allowedHosts } = config;
  const hostsOf = (boundHost: string): ListenerContext['hosts'] => ({ publicUrl, allowedHosts, boundHost });
  return {
    gateway: {
      load: new Load({ maxInFlight: limits.inFlight, maxBufferedBytes: limits.bufferedBytes }),
      hosts: hostsOf(config.gateway.host),
      allowedOrigins: config.allowedOrigins,
      refused,
    },
    management: {
      load: new Load({ maxInFlight: limits.managementInFlight, maxBufferedBytes: limits.managementBufferedBytes }),
      hosts: hostsOf(config.management.host),
      // Nobody administers from another site's page.
      allowedOrigins: [],
      refused: undefined,
    },
  };
}

const bodyLimitsOf = ({ limits }: Config): AppContext['bodyLimits'] => ({
  bytes: limits.bodyBytes,
  depth: limits.depth,
  values: limits.jsonValues,
  fields: limits.jsonFields,
});
