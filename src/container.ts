import { createHeadWriter } from './admin/audit/audit-head.ts';
import { startExpiringKeys } from './admin/keys/keys.ts';
import { checkDecisionFile } from './admin/log/decision-file.ts';
import { startFollowingCalls } from './admin/log/follow-calls.ts';
import { RefusedRecorder } from './admin/log/refused-recorder.ts';
import { type ActiveProvider, listActiveProviders } from './admin/providers/known-providers.ts';
import type { ReaderData } from './admin/reader-job.ts';
import { type FirstRun, firstRun } from './admin/sign-in/sign-in-links.ts';
import { listWatchedBudgets } from './admin/tenants/budgets.ts';
import { startForgettingCalls } from './admin/usage/forget-calls.ts';
import { assemble } from './assembly.ts';
import { type Catalog, createCatalog } from './catalog/catalog.ts';
import { type Config, readConfig } from './config/config.ts';
import { servedProviders } from './config/upstreams.ts';
import type { Reload, Variables } from './config/variables.ts';
import { type UnnamedModels, unnamedModels } from './core/auto.ts';
import { checkEnvironment, environmentAccesses } from './core/check-providers.ts';
import { isOddlyLow } from './domain/limits.ts';
import { SANDBOX } from './domain/provider.ts';
import { type Clock, formatTime, systemClock } from './domain/time.ts';
import { createGatewayApp } from './http/gateway-app.ts';
import { createManagementApp } from './http/management-app.ts';
import { type Listener, listen } from './http/server.ts';
import { Closers } from './lib/collections.ts';
import { compileAhead } from './lib/schemas.ts';
import { sharpFault } from './lib/sharp.ts';
import type { PrepareMcp } from './mcp/mcp-server.ts';
import { REFUSAL_CODES } from './policy/archive/read-archive.ts';
import { startSandbox } from './providers/sandbox/sandbox.ts';
import { readChainHead } from './store/audit/audit-entries.ts';
import { assertSecretsFit, beginDatabase, checkDataDir } from './store/backup/check-data-dir.ts';
import { noteServed, servedRecord } from './store/bundles/served-record.ts';
import { createDataDir, databasePath, hasDatabase, lockDataDir } from './store/db/data-dir.ts';
import { createCheckpointer } from './store/db/database.ts';
import { DatabaseThread } from './store/db/database-thread.ts';
import { newestCallAt, positionNow } from './store/ledger/call-follower.ts';
import { loadSecrets, type ServerKey, type ServerKeys } from './store/secrets/secrets.ts';
import { forgetServing, noteServing } from './store/secrets/serving.ts';
import { createStore } from './store/store.ts';
import { createTelemetry, type Telemetry } from './telemetry/telemetry.ts';
import { type Build, buildText, readBuild } from './version.ts';
import { createPolicyKeeper } from './workbench/bundles/policy-keeper.ts';

export interface Overrides {
  readonly clock?: Clock;
  readonly prepareMcp?: PrepareMcp | undefined;
}

type FrontListener = Pick<Listener, 'origin' | 'close'>;

/** The running product. */
export interface Container {
  readonly gateway: FrontListener;
  readonly management: FrontListener;
  readonly build: Build;
  /** Those that can be called now. */
  readonly providers: readonly ActiveProvider[];
  /** Records and secrets that a first start created; undefined on every later one. */
  readonly firstRun: FirstRun | undefined;
  /**
   * Takes from another environment the credentials and addresses of providers, the log's level and the token for metrics, and reads
   * the server's secrets again. What is wrong changes nothing. Both are logged. @returns the environment, where it was taken
   */
  reload(signal: NodeJS.Signals, find: () => Reload): Promise<Variables | undefined>;
  /** Stops in reverse order of the start: no new requests, what runs is finished and settled, then everything is closed. */
  close(): Promise<void>;
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
  forgetServing(config.dataDir);
  closers.add(() => forgetServing(config.dataDir));
  // Next to a database, new secrets would make every key in it unknown: a lost file stops the start.
  const create = !hasDatabase(config.dataDir);
  if (create) beginDatabase(config.dataDir);
  const secrets = loadSecrets(config.dataDir, { create, given: config.secrets });
  const { signingKey } = secrets;
  // Everyone who uses them refers to these lists: a reload changes what they hold.
  const peppers = takenKeys(secrets.peppers);
  const encryptionKeys = takenKeys(secrets.encryptionKeys);
  const telemetry = createTelemetry({ level: config.logLevel, accessLog: config.accessLog });
  closers.add(() => telemetry.close());
  const running = readBuild();
  telemetry.info(buildText(running), { ...running });
  if (config.decisionFile !== undefined) checkDecisionFile(config.decisionFile.path);
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
    onCommit: telemetry.committed,
    checkpointer,
    onOverReservation: telemetry.overReservation,
  });
  closers.add(() => store.close());
  closers.add(() => checkpointer.close());
  telemetry.recovered(await store.recoverOpenCalls());
  warnOfSlowClock(await store.read(newestCallAt), clock.now(), telemetry);

  closers.add(startExpiringKeys(store));
  if (config.retentionDays !== undefined)
    closers.add(startForgettingCalls(config.retentionDays, { store, clock, telemetry }));

  const { refusedRequestsHours: hours } = config;
  const refused = hours === undefined ? undefined : new RefusedRecorder({ store, clock, telemetry, hours });
  closers.add(() => refused?.close());

  const sandbox = config.sandbox ? await startSandbox() : undefined;
  if (sandbox !== undefined) closers.add(() => sandbox.close());
  const catalog = createCatalog({ ...config, clock });
  warnOfUnknownModels(config, catalog, telemetry);
  warnOfLowPrices(config, telemetry);
  const models = namedModels(config, catalog, clock.now());
  for (const warning of [...sandboxWarnings(config, models), ...addressWarnings(config)]) telemetry.warn(warning);
  const fault = sharpFault();
  if (fault !== undefined) {
    telemetry.warn(
      `The tools of /mcp that generate images are refused, and the sandbox draws nothing: ${fault}. Run \`npm ci\` with optional dependencies.`,
    );
  }
  const policy = await createPolicyKeeper({ config, clock, telemetry });
  closers.add(() => policy.close());
  const stopping = new AbortController();
  const decisionFile =
    config.decisionFile === undefined ? undefined : { ...config.decisionFile, begin: await store.read(positionNow) };
  const readerData: ReaderData = { databasePath: databasePath(config.dataDir), decisionFile };
  const reader = new DatabaseThread({ job: 'readDatabase', data: readerData });
  closers.add(() => reader.close());
  let { metricsToken } = config;
  const { app, providers, activate } = assemble(
    {
      config,
      clock,
      secrets: { peppers, encryptionKeys, signingKey },
      telemetry,
      store,
      catalog,
      sandbox,
      unnamedModels: models,
      refused,
      policy,
      reader,
      stopping: stopping.signal,
      metricsToken: () => metricsToken,
      prepareMcp,
    },
    closers,
  );
  const writeHead =
    config.auditHeadFile === undefined ? undefined : createHeadWriter({ file: config.auditHeadFile, store, telemetry });
  closers.add(
    startFollowingCalls({ reader, hasDecisionFile: decisionFile !== undefined, writeHead, store, telemetry }),
  );
  telemetry.watch({
    ...running,
    catalogDate: catalog.date,
    bundleDigest: () => policy.inForce().bundle.digest,
    policyTimes: () => policy.inForce().status,
    refusalCodes: REFUSAL_CODES,
    budgets: config.budgetMetrics ? () => store.read((db) => listWatchedBudgets(db, clock.now())) : undefined,
    loads: { gateway: app.gateway.load, management: app.management.load },
    cacheEntries: () => app.cache.entries,
    cacheBytes: () => app.cache.bytes,
    restingTargets: () => app.health.resting(),
    queuedWrites: store.waitingWrites,
    auditEntries: () => store.read((db) => readChainHead(db)?.seq ?? 0),
  });
  const listeners: FrontListener[] = [];
  // Both at once: while one finishes what runs, the other must not accept more.
  closers.add(async () => void (await Promise.all(listeners.map((each) => each.close(config.timeouts.shutdownGrace)))));
  closers.add(() => stopping.abort());
  const management = await listen(createManagementApp(app), {
    ...config.management,
    ...listenTimesOf(config),
    variable: 'MANAGEMENT_PORT',
  });
  listeners.push(management);
  const front = await listen(createGatewayApp(app), { ...config.gateway, ...listenTimesOf(config), variable: 'PORT' });
  listeners.push(front);
  policy.follow(activate);
  void compileAhead(['ChatRequest', 'SubjectRules', 'PolicyDecision']);
  if (config.checkProviders)
    void checkEnvironment(environmentAccesses(config, providers), { ...app, stopping: stopping.signal });

  // Last of all: secrets that are made by a start that then fails would never be shown.
  const first = await store.write((db, now) => firstRun(db, peppers[0], now));

  noteServing(config.dataDir, { peppers, encryptionKeys });
  const started = {
    startedAt: formatTime(clock.now()),
    catalogDate: catalog.date,
    bundleDigest: policy.inForce().bundle.digest,
  };
  noteServed(config.dataDir, servedRecord(config, started));
  return {
    gateway: front,
    management,
    build: running,
    firstRun: first,
    providers: await store.read((db) => listActiveProviders(db, config)),
    async reload(signal, find) {
      try {
        const { env, taken, waiting } = find();
        const next = readConfig({ ...env, ENV_FILE: undefined });
        const loaded = loadSecrets(config.dataDir, { create: false, given: next.secrets });
        const check = { dataDir: config.dataDir, given: next.secrets, now: clock.now() };
        await store.read((db) => assertSecretsFit(db, loaded, check));
        if (stopping.signal.aborted) return undefined;
        // These first, since they can fail; nobody runs between them and the rest. Another catalogue waits for a restart.
        noteServed(config.dataDir, servedRecord({ ...config, serviceProviders: next.serviceProviders }, started));
        noteServing(config.dataDir, loaded);
        providers.renew(next);
        metricsToken = next.metricsToken;
        takeKeys(peppers, loaded.peppers);
        takeKeys(encryptionKeys, loaded.encryptionKeys);
        telemetry.info(`${signal}: the environment file and the secrets were read again`, { taken });
        if (waiting.length > 0) telemetry.warn('changed settings wait for a restart', { waiting });
        telemetry.setLevel(next.logLevel);
        return env;
      } catch (error) {
        if (stopping.signal.aborted) return undefined;
        telemetry.warn(`${signal} changed nothing`, { error: error instanceof Error ? error.message : String(error) });
        return undefined;
      }
    },
    close: () => closers.close(),
  };
}

/** Rows of calls are numbered by the time, and a new one never stands before the newest. */
function warnOfSlowClock(newest: number, now: number, telemetry: Telemetry): void {
  const behindSeconds = Math.floor((newest - now) / 1000);
  if (behindSeconds < 1) return;
  telemetry.warn(
    'the clock is behind the newest call: until it has caught up, windows of budgets and limits, reports by time and the times in ids are wrong. Set the clock.',
    { behindSeconds, newestCallAt: formatTime(newest) },
  );
}

/** Prices of upstreams are per million tokens, and elsewhere often per token. */
function warnOfLowPrices({ upstreams }: Config, telemetry: Telemetry): void {
  for (const { name, models } of upstreams) {
    const low = models.filter(({ prices }) => isOddlyLow(prices.prompt) || isOddlyLow(prices.completion));
    if (low.length === 0) continue;
    telemetry.warn('a price is below 0.001 USD per million tokens: was it meant per token?', {
      upstream: name,
      models: low.map(({ id }) => id),
    });
  }
}

type HeldKeys = [ServerKey, ...ServerKey[]];

const takenKeys = ([first, ...others]: ServerKeys): HeldKeys => [first, ...others];

function takeKeys(held: HeldKeys, [first, ...others]: ServerKeys): void {
  held[0] = first;
  held.splice(1, held.length, ...others);
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

const namedModels = (config: Config, catalog: Catalog, now: number): UnnamedModels =>
  unnamedModels(
    { image: config.defaultImageModel, moderation: config.moderationModel },
    { catalog, servedProviders: new Set(servedProviders(config)) },
    now,
  );

/** With other providers connected, an answer of the sandbox is probably a mistake. */
function sandboxWarnings(config: Config, { image, moderation }: UnnamedModels): string[] {
  if (!config.sandbox || servedProviders(config).every((id) => id === SANDBOX)) return [];
  return [
    ...(config.moderationModel === undefined && moderation === 'sandbox-moderation'
      ? [
          'The sandbox answers /v1/moderations, which knows a few words only: no connected provider moderates. Set OPENAI_API_KEY or MODERATION_MODEL.',
        ]
      : []),
    ...(config.defaultImageModel === undefined && image === 'sandbox-image-plus'
      ? [
          'The sandbox draws for image requests without a model: no connected provider makes images. Set DEFAULT_IMAGE_MODEL, or connect one that does.',
        ]
      : []),
  ];
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.');

/** Callers from elsewhere may send any X-Forwarded-For. */
function addressWarnings({ gateway, trustedProxies }: Config): string[] {
  if (trustedProxies !== null || isLoopback(gateway.host)) return [];
  return [
    `HOST is ${gateway.host} and TRUSTED_PROXIES is not set: a caller can forge the client address, by which IP rules decide and which stands in the logs, calls and decisions. Set TRUSTED_PROXIES to the ranges of your proxies, or to \`none\`.`,
  ];
}

const listenTimesOf = ({ timeouts }: Config) => ({
  headersTimeoutMs: timeouts.requestHeaders,
  bodyTimeoutMs: timeouts.requestBody,
  stallTimeoutMs: timeouts.idle,
});
