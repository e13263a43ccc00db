import { bytesOfId, idsFrom } from '../../src/domain/id.ts';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import type { Database } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import { dayOfNumber, numbersFrom } from '../../src/store/ledger/call-number.ts';
import { createCallReferences } from '../../src/store/ledger/call-references.ts';
import { CALL_STATES } from '../../src/store/ledger/ledger-statements.ts';
import { createStore } from '../../src/store/store.ts';

export const CALLS = 1_000_000;
const DAYS = 6;
const KEYS = 50;
const MODELS = 40;
const PROVIDERS = 5;
/** So many in a transaction: the gateway writes meanwhile. */
const CHUNK = 10_000;

const attemptsOf = (id: string): string =>
  JSON.stringify(
    Array.from({ length: 2 }, (_, index) => ({
      provider: `provider-${index}`,
      model: 'model',
      region: 'global',
      status_code: 200,
      error_type: 'none',
      succeeded: true,
      credentialSource: 'service',
      logId: id,
    })),
  );

/** Calls as the ledger leaves them, the times of their ids and rows evenly over the days before `now`. */
function insertCalls(db: Database, first: number, now: number): void {
  const references = createCallReferences(db);
  const key = db.get(build.selectFrom('keys').selectAll().where('kind', '=', 'regular').limit(1));
  if (key === undefined) throw new Error('the gateway has made no key');
  const { organizationId, projectId, createdBy: memberId } = key;
  const insert = db.connection.prepare(INSERT);
  for (let place = first; place < first + CHUNK; place += 1) {
    const time = Math.floor(now - (DAYS * 86_400_000 * (CALLS - place)) / CALLS);
    const id = idsFrom('call', time).slice(0, -8) + place.toString(16).padStart(8, '0');
    const number = numbersFrom(time);
    const day = dayOfNumber(number);
    const modelId = `model-${place % MODELS}`;
    const asked = { action: 'chat', tool: null, requestedModel: modelId, stream: false };
    const target = {
      providerId: `provider-${place % PROVIDERS}`,
      modelId,
      providerKeyId: null,
      attemptsJson: attemptsOf(id),
    };
    const isDenied = place % 20 === 0;
    insert.run({
      number,
      id: bytesOfId(id),
      origin: references.origin({ organizationId, projectId, keyId: `key_${place % KEYS}`, memberId, ...asked }, day),
      target: references.target(target, id, day),
      state: isDenied ? CALL_STATES.denied : CALL_STATES.settled,
      time,
      cost: place * 1_000_003,
      prompt: place % 4000,
      completion: place % 700,
      status: isDenied ? 403 : 200,
    });
  }
}

const INSERT = `
INSERT INTO ledger (number, id, origin, target, state, createdAt, requestId, settledAt, cost, costDetailsJson, promptTokens, completionTokens, statusCode)
VALUES (:number, :id, :origin, :target, :state, :time, :id, :time + 800, :cost,
  '{"input_cost":"0.000002","output_cost":"0.000016","total_cost":"0.000018"}', :prompt, :completion, :status)`;

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
