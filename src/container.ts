import { createHmac } from 'node:crypto';
import manifest from '../package.json' with { type: 'json' };
import { startExpiringKeys } from './admin/keys/expire-keys.ts';
import { startIndexingCalls } from './admin/log/index-calls.ts';
import { createLogReader } from './admin/log/log-reader.ts';
import { type ActiveProvider, listActiveProviders } from './admin/providers/list-active-providers.ts';
import { type FirstRun, firstRun } from './admin/sign-in/first-run.ts';
import { startForgettingCalls } from './admin/usage/forget-calls.ts';
import { createUsageReporter } from './admin/usage/usage-reporter.ts';
import { type Catalog, createCatalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { servedProviders } from './config/service-provider.ts';
import { createAuthenticate, createAuthenticateToken } from './core/access/authenticate.ts';
import { createDocuments } from './core/access/documents.ts';
import { createTakeRate } from './core/access/rate-limit.ts';
import { createAnswers } from './core/call/answers.ts';
import { Health } from './core/call/health.ts';
import { ResponseCache } from './core/chat/response-cache.ts';
import { createCheckAddress } from './core/models/check-address.ts';
import { createListModels } from './core/models/list-models.ts';
import { createFindReach } from './core/models/reach.ts';
import { createFindReachable } from './core/models/reachable.ts';
import { type Clock, systemClock } from './domain/time.ts';
import { Turns } from './domain/turns.ts';
import { type Listener, listen } from './http/connection/listen.ts';
import { createGatewayApp } from './http/gateway-app.ts';
import { Load } from './http/load.ts';
import { createManagementApp } from './http/management-app.ts';
import { consentPath, showOAuthError } from './http/routes/oauth/consent.ts';
import { getOrMake } from './lib/get-or-make.ts';
import { chatTool } from './mcp/chat-tool.ts';
import { imageTools } from './mcp/image-tools.ts';
import type { McpServer, PrepareMcp } from './mcp/mcp-server.ts';
import { modelTools } from './mcp/model-tools.ts';
import { prepareUploads } from './mcp/uploads.ts';
import { createTransport } from './net/transport.ts';
import type { AuthorizationServer } from './oauth/authorization-server.ts';
import { loadAuthorizationServer } from './oauth/load.ts';
import { createFetchDocument, DOCUMENT_BOUNDS } from './oauth/metadata-documents.ts';
import { createActivePolicy } from './policy/active-policy.ts';
import { createProviders } from './providers/providers.ts';
import { startSandbox } from './providers/sandbox/sandbox.ts';
import { createTokenEstimator } from './providers/tokens/token-estimate.ts';
import { checkDataDir } from './store/backup/check-data-dir.ts';
import { createDataDir, databasePath, hasDatabase } from './store/db/data-dir.ts';
import { lockDataDir } from './store/db/lock.ts';
import { createRecordingCheck } from './store/recording-check.ts';
import { loadSecrets } from './store/secrets/secrets.ts';
import { createStore } from './store/store.ts';
import { createCheckpointer } from './store/threads/checkpointer.ts';
import { createTelemetry, type Telemetry } from './telemetry.ts';
import { createAnalyst } from './workbench/analysis/analyst.ts';

export interface Overrides {
  readonly clock?: Clock;
  readonly prepareMcp?: PrepareMcp | undefined;
}

/** The running product. */
export interface Container {
  readonly gateway: Listener;
  readonly management: Listener;
  /** Those that can be called now. */
  readonly providers: readonly ActiveProvider[];
  /** What a first start created; undefined on every later one. */
  readonly firstRun: FirstRun | undefined;
  /** Stops in reverse order of the start: no new requests, what runs is finished and settled, then everything is closed. */
  close(): Promise<void>;
}

/** Things to undo, last first. */
class Closers {
  readonly #closers: (() => void | Promise<void>)[] = [];

  add(close: () => void | Promise<void>): void {
    this.#closers.push(close);
  }

  /** Undoes all of them, whatever one of them throws; then throws the first of that. */
  async close(): Promise<void> {
    const faults: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}

/** The composition root: everything is made here, once, and handed to those who need it. What was begun is undone on failure. */
export async function createContainer(config: Config, overrides: Overrides = {}): Promise<Container> {
  const closers = new Closers();
  try {
    return await build(config, overrides, closers);
  } catch (error) {
    await closers.close();
    throw error;
  }
}

async function build(
  config: Config,
  { clock = systemClock, prepareMcp }: Overrides,
  closers: Closers,
): Promise<Container> {
  createDataDir(config.dataDir);
  checkDataDir({ dataDir: config.dataDir, given: config.secrets, now: clock.now() });
  const lock = lockDataDir(config.dataDir);
  closers.add(() => lock.release());
  // Next to a database, new secrets would make every key in it unknown: a lost file stops the start.
  const create = !hasDatabase(config.dataDir);
  const { peppers, encryptionKeys, signingKey } = loadSecrets(config.dataDir, { create, given: config.secrets });
  const telemetry = createTelemetry({ level: config.logLevel, accessLog: config.accessLog });
  closers.add(() => telemetry.close());
  const checkpointer = createCheckpointer(databasePath(config.dataDir), (error) =>
    telemetry.warn('the checkpointing thread is not there: checkpoints stop the calls for milliseconds', {
      error: error instanceof Error ? error.message : String(error),
    }),
  );
  const store = createStore({
    path: databasePath(config.dataDir),
    clock,
    durability: config.durability,
    create: true,
    auditKey: signingKey.key,
    onCommit: (durationMs) => {
      telemetry.committed(durationMs);
      checkpointer.committed();
    },
    onOverReservation: telemetry.overReservation,
  });
  closers.add(() => store.close());
  closers.add(() => checkpointer.close());
  telemetry.recovered(await store.recoverOpenCalls());

  closers.add(startExpiringKeys(store));
  if (config.retentionDays !== undefined)
    closers.add(startForgettingCalls(config.retentionDays, { store, clock, telemetry }));

  const policy = await createActivePolicy();
  closers.add(() => policy.pdp().close());
  const sandbox = config.sandbox ? await startSandbox() : undefined;
  if (sandbox !== undefined) closers.add(() => sandbox.close());
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
  });
  closers.add(() => transport.close());
  const providers = createProviders({
    sandboxOrigin: sandbox?.origin,
    upstreams: config.upstreams,
    serviceProviders: config.serviceProviders,
    pepper: peppers[0],
  });
  const catalog = createCatalog({ sandbox: config.sandbox, upstreams: config.upstreams, clock });

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
    defaultImageModel: config.defaultImageModel,
    moderationModel: config.moderationModel,
  };
  warnOfUnknownModels(config, catalog, telemetry);
  const listModels = createListModels({
    catalog,
    findReach,
    findReachable,
    clock,
    moderationModel: config.moderationModel,
    telemetry,
  });

  const uploadDir = config.uploadDir === undefined ? undefined : prepareUploads(config.uploadDir);
  const closing = new AbortController();
  async function loadMcp(): Promise<McpServer> {
    const { createMcpServer } = await import('./mcp/mcp-server.ts');
    const { nanoBananaModel } = config;
    return createMcpServer({
      tools: [chatTool(calls), ...imageTools({ ...calls, nanoBananaModel, uploadDir }), ...modelTools(listModels)],
      version: manifest.version,
      keepAliveMs: timeouts.keepAliveComment,
      closing: closing.signal,
      prepare: prepareMcp,
    });
  }
  let loadedMcp: Promise<McpServer> | undefined;

  // Connections of its own: what anyone can name must not displace those to providers.
  const documentTransport = createTransport({
    ...DOCUMENT_BOUNDS,
    parseLarge: answers.parse,
    privateExceptions: config.allowPrivateClients,
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

  let stopping = false;
  const load = new Load({ maxInFlight: limits.inFlight, maxBufferedBytes: limits.bufferedBytes });
  const managementLoad = new Load({
    maxInFlight: limits.managementInFlight,
    maxBufferedBytes: limits.managementBufferedBytes,
  });
  const canRecord = createRecordingCheck(store, clock);
  const readiness = async (): Promise<string | undefined> => {
    if (stopping) return 'stopping';
    if (load.isFull() || telemetry.isLate()) return 'overloaded';
    return (await canRecord()) ? undefined : 'cannot_record';
  };
  const takeRate = createTakeRate(config.rateLimits);
  const hosts = { publicUrl: config.publicUrl, allowedHosts: config.allowedHosts };
  const trustedProxies = config.trustedProxies ?? undefined;
  const bodyLimits = {
    bytes: limits.bodyBytes,
    depth: limits.depth,
    values: limits.jsonValues,
    fields: limits.jsonFields,
  };
  const listenTimes = {
    headersTimeoutMs: timeouts.requestHeaders,
    bodyTimeoutMs: timeouts.requestBody,
    stallTimeoutMs: timeouts.idle,
  };
  const gatewayApp = createGatewayApp({
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
    closing: closing.signal,
    checkAddress: createCheckAddress({ store, documents, pdp }),
    version: manifest.version,
    telemetry,
    takeRate,
    load,
    readiness,
    hosts: { ...hosts, boundHost: config.gateway.host },
    allowedOrigins: config.allowedOrigins,
    trustedProxies,
    bodyLimits,
    keepAliveMs: timeouts.keepAliveComment,
    metadataForm: config.metadataForm,
  });
  const turns = new Turns();
  const analyst = createAnalyst({
    databasePath: databasePath(config.dataDir),
    catalog,
    servedProviders: servedProviders(config),
    clock,
    turns,
  });
  closers.add(() => analyst.close());
  const usageReporter = createUsageReporter({ databasePath: databasePath(config.dataDir), turns });
  closers.add(() => usageReporter.close());
  const logReader = createLogReader({ databasePath: databasePath(config.dataDir), turns });
  closers.add(() => logReader.close());
  closers.add(startIndexingCalls({ databasePath: databasePath(config.dataDir), store, turns, telemetry }));
  const managementApp = createManagementApp({
    store,
    catalog,
    clock,
    analyst,
    usageReporter,
    logReader,
    peppers,
    encryptionKey: encryptionKeys[0],
    allowPrivateUpstreams: config.allowPrivateUpstreams,
    trustedProxies,
    telemetry,
    takeRate,
    load: managementLoad,
    readiness,
    hosts: { ...hosts, boundHost: config.management.host },
    // Nobody administers from another site's page.
    allowedOrigins: [],
    bodyLimits,
    metricsToken: config.metricsToken,
  });
  telemetry.watch({
    version: manifest.version,
    catalogDate: catalog.date,
    bundleDigest: () => pdp().bundleDigest,
    loads: { gateway: load, management: managementLoad },
    queuedWrites: store.waitingWrites,
    cacheEntries: () => cache.entries,
    cacheBytes: () => cache.bytes,
    restingTargets: () => health.resting(),
  });
  const listeners: Listener[] = [];
  // Both at once: while one finishes what runs, the other must not accept more.
  closers.add(async () => void (await Promise.all(listeners.map((each) => each.close(timeouts.shutdownGrace)))));
  closers.add(() => closing.abort());
  const management = await listen(managementApp, { ...config.management, ...listenTimes, variable: 'MANAGEMENT_PORT' });
  listeners.push(management);
  const gateway = await listen(gatewayApp, { ...config.gateway, ...listenTimes, variable: 'PORT' });
  listeners.push(gateway);

  // Last of all: secrets that are made by a start that then fails would never be shown.
  const first = await store.write((db, now) => firstRun(db, peppers[0], now));

  return {
    gateway,
    management,
    firstRun: first,
    providers: await store.read((db) => listActiveProviders(db, config)),
    close: () => {
      stopping = true;
      return closers.close();
    },
  };
}

/** A configured model may be a custom one of an organization, so that the catalogue does not know it is no reason not to start. */
function warnOfUnknownModels(config: Config, catalog: Catalog, telemetry: Telemetry): void {
  const configured = {
    DEFAULT_IMAGE_MODEL: config.defaultImageModel,
    MODERATION_MODEL: config.moderationModel,
    NANO_BANANA_MODEL: config.nanoBananaModel,
  };
  for (const [variable, model] of Object.entries(configured)) {
    if (model === undefined || catalog.resolve(model) !== undefined) continue;
    telemetry.warn('the catalogue does not know a configured model', { variable, model });
  }
}
