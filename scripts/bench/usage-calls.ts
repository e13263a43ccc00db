import { setTimeout as pause } from 'node:timers/promises';
import { bytesOfId, dayOfNumber, idsFrom, numbersFrom } from '../../src/domain/id.ts';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import type { Database } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import { hasNextBlock } from '../../src/store/ledger/call-index.ts';
import { createCallReferences, type DecisionRecord } from '../../src/store/ledger/references.ts';
import { CALL_STATES } from '../../src/store/ledger/statements.ts';
import { createStore } from '../../src/store/store.ts';

export const CALLS = 1_000_000;
const DAYS = 6;
const KEYS = 50;
const MODELS = 40;
const PROVIDERS = 5;
const ADDRESSES = 200;
const RULES = 20;
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

const hex = (value: number): string => value.toString(16).padStart(32, '0');

const addressOf = (place: number): string => `192.0.2.${place % ADDRESSES}`;

/** A decision about three candidates. */
function decisionOf(place: number, isDenied: boolean): DecisionRecord {
  const rule = { scope: 'key', effect: 'deny', kind: 'models', ruleIds: [`rule_${hex(place % RULES)}`] };
  const candidates = Array.from({ length: 3 }, (_, index) => ({
    id: `provider-${index}/model-${place % MODELS}`,
    names: [`model-${place % MODELS}`, `provider-${index}/model-${place % MODELS}`],
    pricing: { type: 'paid', input: 1_000_000, output: 4_000_000 },
  }));
  return {
    outcome: isDenied ? 'deny' : 'permit',
    reasonJson: isDenied ? JSON.stringify({ ...rule, values: [`model-${place % MODELS}`] }) : null,
    violationsJson: JSON.stringify(
      isDenied ? candidates.map(({ id }) => ({ ...rule, candidate: id, values: [`model-${place % MODELS}`] })) : [],
    ),
    shadowJson: null,
    bundleDigest: hex(1),
    dataDigest: hex(place % KEYS),
    dataText: '{"subjects":{}}',
    ruleRevision: 1,
    inputJson: JSON.stringify({ action: 'chat', client_address: addressOf(place), candidates }),
  };
}

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
    const isDenied = place % 20 === 0;
    const day = dayOfNumber(number);
    const modelId = `model-${place % MODELS}`;
    const asked = { action: 'chat', tool: null, requestedModel: modelId, stream: false };
    const target = {
      providerId: `provider-${place % PROVIDERS}`,
      modelId,
      providerKeyId: null,
      attemptsJson: attemptsOf(id),
    };
    const clientAddress = addressOf(place);
    insert.run({
      number,
      id: bytesOfId(id),
      origin: references.origin({ organizationId, projectId, keyId: `key_${place % KEYS}`, memberId, ...asked }, day),
      verdict: references.verdict({ decision: decisionOf(place, isDenied), clientAddress }, day),
      target: references.target(target, id, day),
      clientRequest: place % 2 === 0 ? null : `caller-${place}`,
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
INSERT INTO ledger (number, id, origin, verdict, target, state, createdAt, requestId, clientRequestId, settledAt, cost, costDetailsJson, promptTokens, completionTokens, statusCode)
VALUES (:number, :id, :origin, :verdict, :target, :state, :time, :id, :clientRequest, :time + 800, :cost,
  '{"input_cost":"0.000002","output_cost":"0.000016","total_cost":"0.000018"}', :prompt, :completion, :status)`;

/** Fills the database of a gateway that runs, and waits until the gateway has indexed the calls. */
export async function fillCalls(dataDir: string, progress: (done: number, all: number) => void): Promise<void> {
  const store = createStore({ path: databasePath(dataDir), clock: systemClock, busyTimeoutMs: 5000 });
  try {
    const now = systemClock.now();
    for (let first = 0; first < CALLS; first += CHUNK) {
      await store.write((db) => insertCalls(db, first, now));
      progress(first + CHUNK, CALLS);
    }
    while (await store.read(hasNextBlock)) await pause(500);
  } finally {
    store.close();
  }
}
