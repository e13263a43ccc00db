import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { idLike, newId } from '../../src/domain/id.ts';
import type { Bounds } from '../../src/domain/limits.ts';
import { ManualClock } from '../../src/domain/time.ts';
import type { FinishedCall, NewCall, Settlement } from '../../src/store/ledger/ledger.ts';
import type { DecisionRecord } from '../../src/store/ledger/references.ts';
import { createStore, type Store, type StoreOptions } from '../../src/store/store.ts';
import type { NewKey } from '../../src/store/tenants/key-records.ts';
import { initializeTenant } from '../../src/store/tenants/tenants.ts';

export const START = Date.UTC(2026, 2, 1, 12);

/** A directory that is gone when the test has ended. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'portcullis-store-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export interface Tenant {
  readonly organizationId: string;
  readonly projectId: string;
  readonly memberId: string;
  readonly masterKeyId: string;
  readonly keyId: string;
  /** Hash of the gateway key's secret. */
  readonly secretHash: string;
}

const secret = (secretHash: string) => ({ secretHash, pepperId: 'pepper', mask: 'pcl_abcd…wxyz' });

/** A further organization in the store. */
export async function addTenant(store: Store): Promise<Tenant> {
  const tenant: Tenant = {
    organizationId: newId('org'),
    projectId: newId('proj'),
    memberId: newId('mem'),
    masterKeyId: newId('mkey'),
    keyId: newId('key'),
    secretHash: newId('req'),
  };
  await store.write((db, now) =>
    initializeTenant(
      db,
      {
        organization: { id: tenant.organizationId, name: 'Acme' },
        project: { id: tenant.projectId, name: 'Default' },
        owner: { id: tenant.memberId, email: 'owner@acme.test', passwordHash: null },
        masterKey: { id: tenant.masterKeyId, description: 'First', ...secret(`master-${tenant.secretHash}`) },
        key: { id: tenant.keyId, description: 'First', ...secret(tenant.secretHash) },
      },
      now,
    ),
  );
  return tenant;
}

/** A store on a new file, with one tenant and a clock that stands at START. */
export async function storeWithTenant(options: Partial<StoreOptions> = {}) {
  const clock = new ManualClock(START);
  const path = join(temporaryDirectory(), 'portcullis.sqlite');
  const store = createStore({ path, clock, create: true, ...options });
  onTestFinished(() => store.close());
  return { store, clock, path, tenant: await addTenant(store) };
}

/** A further key of the tenant. */
export const newKey = (tenant: Tenant, changes: Partial<NewKey> = {}): NewKey => {
  const id = newId('key');
  return {
    id,
    organizationId: tenant.organizationId,
    projectId: tenant.projectId,
    createdBy: tenant.memberId,
    description: 'Another',
    kind: 'regular',
    ...secret(`hash-of-${id}`),
    expiresAt: null,
    usageLimit: null,
    periodUsageLimit: null,
    periodUsageDurationValue: null,
    periodUsageDurationUnit: null,
    ...changes,
  };
};

export const newCall = (tenant: Tenant, changes: Partial<NewCall> = {}): NewCall => ({
  id: newId('call'),
  organizationId: tenant.organizationId,
  projectId: tenant.projectId,
  keyId: tenant.keyId,
  memberId: tenant.memberId,
  action: 'chat',
  requestId: newId('req'),
  clientRequestId: null,
  clientAddress: '192.0.2.1',
  tool: null,
  requestedModel: 'sandbox/echo',
  stream: false,
  ...changes,
});

/** A call that may cost so much, in pico-dollars, and no less. */
export const costing = (amount = 0n): Bounds => ({
  least: amount,
  within: () => ({ amount, maxOutputTokens: null }),
});

/** Bounds that may not be asked for. */
export const notAsked: Bounds = {
  get least(): bigint {
    throw new Error('asked');
  },
  within() {
    throw new Error('asked');
  },
};

/** The id of a call's decision. */
export const decisionIdOf = (call: Pick<NewCall, 'id'>): string => idLike(call.id, 'dec');

export const newDecision = (changes: Partial<DecisionRecord> = {}): DecisionRecord => ({
  outcome: 'permit',
  reasonJson: null,
  violationsJson: '[]',
  shadowJson: null,
  bundleDigest: 'b'.repeat(64),
  dataDigest: 'd'.repeat(64),
  dataText: '{"subjects":{}}',
  ruleRevision: 3,
  inputJson: '{"action":"chat"}',
  ...changes,
});

export const settlement = (changes: Partial<Settlement> = {}): Settlement => ({
  state: 'settled',
  cost: 25n,
  priceUnknown: false,
  costDetailsJson: '{"total_cost":"0.000000000025"}',
  promptTokens: 10,
  completionTokens: 5,
  reasoningTokens: 1,
  cachedTokens: 2,
  cacheWriteTokens: 3,
  usageEstimated: false,
  providerId: 'sandbox',
  modelId: 'echo',
  providerKeyId: null,
  attemptsJson: '[]',
  statusCode: 200,
  errorCode: null,
  tookMs: null,
  timesJson: null,
  ...changes,
});

export const denial = (changes: Partial<FinishedCall> = {}): FinishedCall => ({
  state: 'denied',
  cached: false,
  providerId: null,
  modelId: null,
  statusCode: 403,
  errorCode: 'permission_denied',
  tookMs: null,
  timesJson: null,
  ...changes,
});
