import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import type { Database } from '../../src/store/db/database.ts';
import { createStore } from '../../src/store/store.ts';

export const CALLS = 1_000_000;
const DAYS = 6;
const KEYS = 50;
const MODELS = 40;
const PROVIDERS = 5;
/** So many in a transaction: the gateway writes meanwhile. */
const CHUNK = 10_000;

const ATTEMPTS = JSON.stringify(
  Array.from({ length: 2 }, (_, index) => ({
    provider: `provider-${index}`,
    model: 'model',
    region: 'global',
    status_code: 200,
    error_type: 'none',
    succeeded: true,
    credentialSource: 'service',
    logId: 'call_0123456789abcdef0123456789abcdef',
  })),
);

/** Calls as the ledger leaves them, the times of their ids and rows evenly over the days before `now`. */
const INSERT = `
WITH RECURSIVE numbers (number) AS (
  SELECT :first UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :first + ${CHUNK}
), timed AS (SELECT number, CAST(:now - ${DAYS * 86_400_000}.0 * (${CALLS} - number) / ${CALLS} AS INTEGER) AS time FROM numbers)
INSERT INTO calls (
  id, organization_id, project_id, key_id, member_id, decision_id, state, action, request_id, requested_model, stream,
  created_at, settled_at, cost_pico, cost_details_json, prompt_tokens, completion_tokens, provider_id, model_id,
  attempts_json, status_code
)
SELECT
  'call_' || printf('%012x', time) || printf('%020x', number), keys.organizationId, keys.projectId,
  'key_' || number % ${KEYS}, keys.createdBy, 'dec_0123456789abcdef' || number,
  iif(number % 20 = 0, 'denied', 'settled'), 'chat', 'req_0123456789abcdef' || number, 'model-' || number % ${MODELS}, 0,
  time, time + 800, number * 1000003,
  '{"input_cost":"0.000002","output_cost":"0.000016","total_cost":"0.000018"}', number % 4000, number % 700,
  'provider-' || number % ${PROVIDERS}, 'model-' || number % ${MODELS}, :attempts, iif(number % 20 = 0, 403, 200)
FROM timed JOIN (SELECT * FROM keys WHERE kind = 'regular' LIMIT 1) AS keys`;

const insertCalls = ({ connection }: Database, first: number, now: number): void =>
  void connection.prepare(INSERT).run({ first: BigInt(first), now: BigInt(now), attempts: ATTEMPTS });

/** Fills the database of a gateway that runs. */
export async function fillCalls(dataDir: string, progress: (done: number, all: number) => void): Promise<void> {
  const store = createStore({ path: databasePath(dataDir), clock: systemClock, busyTimeoutMs: 5000 });
  try {
    const now = systemClock.now();
    for (let first = 0; first < CALLS; first += CHUNK) {
      await store.write((db) => insertCalls(db, first, now));
      progress(first + CHUNK, CALLS);
    }
  } finally {
    store.close();
  }
}
