import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLogReader } from '../../../src/admin/log/log-reader.ts';
import { createUsageReporter } from '../../../src/admin/usage/usage-query.ts';
import { Rates } from '../../../src/core/caller.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import type { Readiness } from '../../../src/http/app-context.ts';
import { createManagementApp } from '../../../src/http/management-app.ts';
import { listen } from '../../../src/http/server.ts';
import { Load } from '../../../src/http/state.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { DatabaseThread } from '../../../src/store/db/database-thread.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { createTelemetry } from '../../../src/telemetry/telemetry.ts';
import { createAnalyst } from '../../../src/workbench/analysis/analyst.ts';
import {
  auditKey,
  catalog,
  encryptionKey,
  type MasterTokens,
  masked,
  pepper,
  START,
  seedTenants,
} from '../../admin/tenants.ts';
import { policyInForce } from '../../support/policy-bundles.ts';

export interface Answer {
  readonly status: number;
  /** Parsed, with what only this run has replaced. */
  readonly body: unknown;
  /** As it came. */
  readonly text: string;
  readonly headers: Headers;
}

export interface Sent {
  /** Master key; null: no `Authorization`. Default: the owner's. */
  readonly token?: string | null;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface ManagementServer {
  readonly tokens: MasterTokens;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly origin: string;
  readonly app: ReturnType<typeof createManagementApp>;
  request(method: string, path: string, sent?: Sent): Promise<Answer>;
  close(): Promise<void>;
}

/** Every request begins another window. */
function unlimitedRates(): Rates {
  const limits = {
    chat: undefined,
    images: undefined,
    models: undefined,
    moderations: undefined,
    mcp: undefined,
    management: undefined,
  };
  let now = 0;
  return new Rates(limits, () => (now += 120_000));
}

/** The management listener on a free port, over a database of its own with two organizations. */
export async function startManagementServer(readiness: Readiness = async () => undefined): Promise<ManagementServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  const clock = new ManualClock(START);
  const store = createStore({ path: databasePath(folder), clock, create: true, auditKey });
  const tokens = await store.write(seedTenants);
  const analyst = createAnalyst({
    databasePath: databasePath(folder),
    catalog,
    servedProviders: ['sandbox'],
    bundle: () => policyInForce.bundle,
    clock,
  });
  const data = { databasePath: databasePath(folder), decisionFile: undefined };
  const reader = new DatabaseThread({ job: 'readDatabase', data });
  const usageReporter = createUsageReporter(reader);
  const logReader = createLogReader(reader);
  const app = createManagementApp({
    store,
    catalog,
    clock,
    analyst,
    usageReporter,
    logReader,
    peppers: [pepper],
    encryptionKeys: [encryptionKey],
    allowPrivateUpstreams: ['127.0.0.1:4000'],
    trustedProxies: [],
    keepAliveMs: 15_000,
    telemetry: createTelemetry({ level: 'silent', accessLog: 'off' }),
    rates: unlimitedRates(),
    readiness,
    policyStatus: () => policyInForce.status,
    policy: { inForce: () => policyInForce, history: () => [] },
    management: {
      load: new Load({ maxInFlight: 100, maxBufferedBytes: 10_000_000 }),
      hosts: { boundHost: '127.0.0.1', publicUrl: undefined, allowedHosts: [] },
      allowedOrigins: [],
      refused: undefined,
    },
    bodyLimits: { bytes: 200_000, depth: 64, values: 200_000, fields: 10_000 },
    metricsToken: () => undefined,
  });
  const listener = await listen(app, {
    host: '127.0.0.1',
    port: 0,
    variable: 'MANAGEMENT_PORT',
    headersTimeoutMs: 10_000,
    bodyTimeoutMs: 10_000,
    stallTimeoutMs: 10_000,
  });

  return {
    tokens,
    store,
    clock,
    origin: listener.origin,
    app,
    async request(method, target, { token = tokens.owner, body, headers = {} } = {}) {
      const response = await fetch(`${listener.origin}${target}`, {
        method,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const parsed: unknown = text === '' ? undefined : JSON.parse(text);
      return {
        status: response.status,
        body: parsed === undefined ? undefined : masked(parsed),
        text,
        headers: response.headers,
      };
    },
    async close() {
      await listener.close(0);
      await analyst.close();
      await reader.close();
      store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Status and whole body, to be compared. */
export async function outcome(answer: Answer | Promise<Answer>): Promise<Pick<Answer, 'status' | 'body'>> {
  const { status, body } = await answer;
  return { status, body };
}

/** What a refused request is answered with. */
export const refused = (code: string, message: string, param: string | null = null) => ({
  error: { message, type: 'invalid_request_error', param, code },
});
