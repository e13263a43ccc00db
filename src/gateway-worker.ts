// A thread that serves the gateway: all but the ledger, which the thread that has started it keeps (src/workers/README.md).
import { parentPort, workerData } from 'node:worker_threads';
import manifest from '../package.json' with { type: 'json' };
import { createCatalog } from './catalog/catalog.ts';
import type { Config } from './config/config.ts';
import { createSharedTakeRate } from './core/access/shared-rates.ts';
import { systemClock } from './domain/time.ts';
import { createGateway, listenTimesOf } from './gateway.ts';
import { listen } from './http/connection/listen.ts';
import { Closers } from './lib/closers.ts';
import type { PolicyInForce } from './policy/active-policy.ts';
import { databasePath } from './store/db/data-dir.ts';
import { loadSecrets } from './store/secrets/secrets.ts';
import { createStore } from './store/store.ts';
import { createTelemetry } from './telemetry.ts';
import type { Answer, FromWorker, ToWorker, WorkerStart } from './workers/messages.ts';
import { Outbox } from './workers/outbox.ts';
import { type Ask, createRemoteStore, remoteRecordingCheck } from './workers/remote-store.ts';

if (parentPort === null) throw new Error('This is no program: it runs as a thread of one.');
const writer = parentPort;
const start: WorkerStart = workerData;
const { sandboxOrigin, rateWindows, policy, port } = start;
const config = withBuffers(start.config);
const clock = systemClock;

/** Buffers arrive as plain bytes. */
function withBuffers(given: Config): Config {
  const { peppers, encryptionKeys } = given.secrets;
  const buffers = (keys: readonly Uint8Array[]): Buffer[] => keys.map((key) => Buffer.from(key));
  return { ...given, secrets: { peppers: buffers(peppers), encryptionKeys: buffers(encryptionKeys) } };
}

const outbox = new Outbox<FromWorker>((messages) => writer.postMessage(messages), setImmediate);
const asked = new Map<number, (answer: Answer) => void>();
let questions = 0;
const ask: Ask = (question) => {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  questions += 1;
  asked.set(questions, resolve);
  outbox.post({ kind: 'asked', id: questions, question });
  return promise;
};

const closers = new Closers();
const telemetry = createTelemetry({
  level: config.logLevel,
  accessLog: config.accessLog,
  handOver: (target, lines) => outbox.post({ kind: 'log', target, lines }),
});
closers.add(() => telemetry.close());

async function close(): Promise<void> {
  try {
    await closers.close();
  } finally {
    outbox.flush();
    process.exit();
  }
}

const secrets = loadSecrets(config.dataDir, { create: false, given: config.secrets });
const local = createStore({
  path: databasePath(config.dataDir),
  clock,
  durability: config.durability,
  auditKey: secrets.signingKey.key,
  onCommit: telemetry.committed,
});
closers.add(() => local.close());

/** The latest that came, until the gateway is there. */
let latest = policy;
let activate = (next: PolicyInForce): void => {
  latest = next;
};

writer.on('message', (messages: readonly ToWorker[]) => {
  // What the writer saw when it answered is seen here too.
  local.lookAgain();
  for (const message of messages) {
    switch (message.kind) {
      case 'answered':
        asked.get(message.id)?.(message.answer);
        asked.delete(message.id);
        break;
      case 'count':
        void telemetry.counts().then((counts) => outbox.post({ kind: 'counts', id: message.id, counts }));
        break;
      case 'policy':
        activate(message.policy);
        break;
      case 'close':
        void close();
        break;
    }
  }
});

const catalog = createCatalog({ ...config, clock });
const stopping = new AbortController();
const gateway = await createGateway(
  {
    config,
    clock,
    secrets,
    telemetry,
    store: createRemoteStore(local, ask),
    catalog,
    sandboxOrigin,
    takeRate: createSharedTakeRate(config.rateLimits, rateWindows),
    canRecord: remoteRecordingCheck(ask),
    policy,
    stopping: stopping.signal,
  },
  closers,
);
activate = gateway.activate;
activate(latest);
telemetry.watch({
  version: manifest.version,
  catalogDate: catalog.date,
  bundleDigest: gateway.bundleDigest,
  loads: { gateway: gateway.load },
  queuedWrites: local.waitingWrites,
  cacheEntries: gateway.cacheEntries,
  cacheBytes: gateway.cacheBytes,
  restingTargets: gateway.restingTargets,
});
const listener = await listen(gateway.app, {
  host: config.gateway.host,
  port,
  isShared: true,
  ...listenTimesOf(config),
  variable: 'PORT',
});
closers.add(() => listener.close(config.timeouts.shutdownGrace));
closers.add(() => stopping.abort());
outbox.post({ kind: 'listening' });
