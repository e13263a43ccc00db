import type { LogReader } from '../../admin/log/log-reader.ts';
import type { UsageReporter } from '../../admin/usage/usage-query.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Endpoint, TrustedProxies } from '../../domain/address.ts';
import type { Pepper } from '../../domain/id.ts';
import type { EncryptionKey } from '../../domain/provider.ts';
import type { Clock } from '../../domain/time.ts';
import type { BundleEvent } from '../../generated/types.ts';
import type { PolicyStatus } from '../../policy/pdp.ts';
import type { Store } from '../../store/store.ts';
import type { Telemetry } from '../../telemetry/telemetry.ts';
import type { Analysis, Analyst } from '../../workbench/analysis/analyst.ts';
import type { AppContext } from '../state.ts';

/** Dependencies of the master API's routes. */
export interface MasterDeps {
  telemetry: Telemetry;
  /** Milliseconds without a byte of a stream after which a comment line is sent. */
  keepAliveMs: number;
  store: Pick<Store, 'read' | 'write'>;
  catalog: Catalog;
  clock: Clock;
  /** Accepted peppers; the first hashes new secrets. */
  peppers: readonly [Pepper, ...Pepper[]];
  /** Seals the customers' own credentials. */
  encryptionKeys: readonly [EncryptionKey, ...EncryptionKey[]];
  /** Private hosts that base URLs may name. */
  allowPrivateUpstreams: readonly Endpoint[];
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  trustedProxies: TrustedProxies | undefined;
  analyst: Pick<Analyst, 'analyse' | 'analyseBy'>;
  usageReporter: Pick<UsageReporter, 'report'>;
  policyStatus: () => PolicyStatus;
  policyHistory: () => readonly BundleEvent[];
  logReader: Pick<LogReader, 'read'>;
}

/** A named part of the path, decoded. */
export function pathParameter(ctx: AppContext, name: string): string {
  const params: unknown = ctx.params;
  const value = typeof params === 'object' && params !== null ? Reflect.get(params, name) : undefined;
  if (typeof value !== 'string') throw new Error(`the route's path has no part ${name}`);
  return value;
}

/** An answer that another thread wrote as JSON. */
export function answerWritten(ctx: AppContext, { buffer, byteOffset, byteLength }: Uint8Array): void {
  ctx.set('cache-control', 'no-store');
  ctx.type = 'application/json';
  ctx.body = Buffer.from(buffer, byteOffset, byteLength);
}

/** Answers with the analyst's findings, and the policy and rules they rest on. */
export function answerAnalysis(ctx: AppContext, { json, policyRevision }: Analysis): void {
  ctx.set('x-policy-revision', policyRevision);
  answerWritten(ctx, json);
}

/** An answer as JSON. What it says may be secret or change at once, so nobody on the way keeps it. */
export function answer(ctx: AppContext, body: object, status = 200): void {
  ctx.status = status;
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}
