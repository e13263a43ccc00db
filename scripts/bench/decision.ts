import path from 'node:path';
import { authorize, type CallContext, createDocuments, type Principal } from '../../src/core/authorize.ts';
import type { CoreContext } from '../../src/core/core-context.ts';
import { type Mapping, TEXT_ONLY } from '../../src/domain/model.ts';
import { systemClock } from '../../src/domain/time.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { createStore } from '../../src/store/store.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { addKeys, createOrganization, keyIds, ORGANIZATION_ID, PROJECT_ID } from './key-store.ts';
import type { Progress } from './progress.ts';
import { percentile } from './statistics.ts';
import { CLIENT_IP, MODEL, PROVIDER } from './workload.ts';

const KEY_COUNTS = [10, 10_000, 1_000_000];
const WARM_UP = 3_000;
const DECISIONS = 20_000;
/** However slow the machine is. */
const MAX_MS = 20_000;

export interface Percentiles {
  readonly p50Us: number;
  readonly p99Us: number;
}

export interface DecisionFigures {
  readonly keys: number;
  /** One key, over and over. */
  readonly busy: Percentiles;
  /** Another key each time, by chance. */
  readonly random: Percentiles;
}

const PICO_PER_MILLION_TOKENS_USD = 1_000_000n;

const mapping: Mapping = {
  id: `${PROVIDER}/${MODEL}`,
  providerId: PROVIDER,
  modelId: MODEL,
  externalId: MODEL,
  custom: false,
  names: [MODEL, `${PROVIDER}/${MODEL}`],
  providerNames: [PROVIDER],
  prices: { prompt: PICO_PER_MILLION_TOKENS_USD, completion: 2n * PICO_PER_MILLION_TOKENS_USD },
  freeFlag: false,
  ...TEXT_ONLY,
};

const context: CallContext = {
  requestId: 'req_bench',
  clientRequestId: undefined,
  arrivedAt: performance.now(),
  receivingMs: 0,
  clientIp: CLIENT_IP,
  signal: new AbortController().signal,
  noFallback: false,
  noCache: false,
  onDecision: () => {},
  onDenial: () => {},
  onCall: () => {},
  room: () => {},
  onDropped: () => {},
  onCacheHit: () => {},
  onEnd: () => {},
};

function principalOf(number: number): Principal {
  const { keyId, memberId } = keyIds(number);
  return {
    keyId,
    organizationId: ORGANIZATION_ID,
    projectId: PROJECT_ID,
    memberId,
    subjects: [
      { scope: 'organization', id: ORGANIZATION_ID },
      { scope: 'member', id: memberId },
      { scope: 'key', id: keyId },
    ],
    ruleRevision: 0,
    keyTags: [],
    capped: false,
    rates: [],
    cacheSeconds: undefined,
  };
}

const noFacts = (): never => {
  throw new Error('the policy of the installation takes no facts');
};

/** Times single decisions as the gateway makes them: rules read, document, data loaded where they are not, evaluation. */
async function measure(
  deps: Pick<CoreContext, 'store' | 'documents' | 'pdp' | 'telemetry'>,
  nextKey: () => number,
): Promise<Percentiles> {
  const microseconds: number[] = [];
  const deadline = performance.now() + MAX_MS;
  for (let count = -WARM_UP; count < DECISIONS && performance.now() < deadline; count += 1) {
    const principal = principalOf(nextKey());
    const start = process.hrtime.bigint();
    await authorize(deps, { principal, context, action: 'chat', candidates: [mapping], findFacts: noFacts });
    const nanoseconds = Number(process.hrtime.bigint() - start);
    if (count >= 0) microseconds.push(nanoseconds / 1000);
  }
  return { p50Us: percentile(microseconds, 0.5), p99Us: percentile(microseconds, 0.99) };
}

/**
 * Decisions alone, without HTTP and without writing, with more and more keys in one store, each in three scopes of six rules.
 * Every one of them permits: a denial throws.
 */
export async function measureDecisions(folder: string, progress: Progress): Promise<DecisionFigures[]> {
  const pdp = createPdp();
  const telemetry = createTelemetry({ level: 'silent', accessLog: 'off' });
  const store = createStore({ path: path.join(folder, 'decisions.sqlite'), clock: systemClock, create: true });
  const figures: DecisionFigures[] = [];
  try {
    await createOrganization(store);
    let stored = 0;
    for (const keys of KEY_COUNTS) {
      progress.say(`decision: storing ${keys} keys`);
      await addKeys(store, stored, keys);
      stored = keys;
      progress.say(`decision: ${keys} keys`);
      const deps = { store, documents: createDocuments(store), pdp: () => pdp, telemetry };
      const busy = await measure(deps, () => 0);
      const random = await measure(deps, () => Math.floor(Math.random() * keys));
      figures.push({ keys, busy, random });
    }
  } finally {
    pdp.close();
    store.close();
  }
  return figures;
}
