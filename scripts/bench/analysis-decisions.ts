import { decisionRecord } from '../../src/core/authorize.ts';
import { bytesOfId, dayOfNumber, idsFrom, newId, numbersFrom } from '../../src/domain/id.ts';
import { compileSubjectRules, dataDocument } from '../../src/policy/data-document.ts';
import { denialReason } from '../../src/policy/denial.ts';
import { inputDocument } from '../../src/policy/input-document.ts';
import { createPdp, type Pdp } from '../../src/policy/pdp.ts';
import type { Database } from '../../src/store/db/database.ts';
import { createCallReferences, type DecisionRecord } from '../../src/store/ledger/references.ts';
import { CALL_STATES } from '../../src/store/ledger/statements.ts';
import type { Store } from '../../src/store/store.ts';
import { activeMappings, keySubjects, type World, type WorldKey } from '../../src/workbench/world/world.ts';

export const DECISIONS = 100_000;
const HOURS = 24;
/** Of each key. */
const ADDRESSES = 20;
/** So many in a transaction: the gateway writes meanwhile. */
const CHUNK = 5_000;

/** Logs decisions of the last day, as the policy makes them, nearly all of different questions. @returns the end of that day, RFC 3339 */
export async function fillDecisions(store: Store, world: World): Promise<string> {
  const pdp = createPdp();
  const keys = [...world.keys.values()];
  const models = [...new Set(activeMappings(world).map(({ modelId }) => modelId))];
  const now = Date.now();
  for (let first = 0; first < DECISIONS; first += CHUNK) {
    await store.write((db) => {
      const references = createCallReferences(db);
      for (let place = first; place < first + CHUNK; place += 1) {
        const key = keys[(place * 7919) % keys.length];
        const model = models[(place * 104_729) % models.length];
        if (key === undefined || model === undefined) throw new Error('the world has no key or no model');
        const address = `10.${place % 3}.0.${(place >> 3) % ADDRESSES}`;
        const decision = decideCall(pdp, world, key, model, address);
        const time = Math.floor(now - (HOURS * 3_600_000 * (DECISIONS - place)) / DECISIONS);
        insertCall(db, references, { time, place, key, model, address, decision });
      }
    });
  }
  pdp.close();
  return new Date(now).toISOString();
}

/** What the policy decides of a call of a key, by the rules of a world, as it is recorded. */
export function decideCall(
  pdp: Pdp,
  world: World,
  key: WorldKey,
  model: string,
  address: string | null,
): DecisionRecord {
  const subjects = keySubjects(world, key);
  const data = dataDocument(subjects.map(({ id, rules }) => ({ id, rules: compileSubjectRules(rules) })));
  const input = inputDocument('chat', address, subjects, world.catalog.resolve(model) ?? []);
  const result = pdp.decide(input, data);
  const reason = result.permitted.length === 0 ? denialReason(input, result) : undefined;
  const ruleRevision = world.organizations.get(key.organizationId)?.ruleRevision ?? 0;
  const made = { id: newId('dec'), bundleDigest: pdp.bundleDigest, ruleRevision, input, result };
  return decisionRecord({ ...made, data: { ...data, stored: data.text } }, reason);
}

interface Logged {
  readonly time: number;
  readonly place: number;
  readonly key: WorldKey;
  readonly model: string;
  readonly address: string;
  readonly decision: DecisionRecord;
}

function insertCall(
  db: Database,
  references: ReturnType<typeof createCallReferences>,
  { time, place, key, model, address, decision }: Logged,
): void {
  const number = numbersFrom(time) + (place % 2048);
  const day = dayOfNumber(number);
  const { organizationId, projectId, memberId } = key;
  const who = { organizationId, projectId: projectId ?? '', keyId: key.id, memberId };
  db.connection.prepare(INSERT).run({
    number,
    id: bytesOfId(idsFrom('call', time).slice(0, -8) + place.toString(16).padStart(8, '0')),
    origin: references.origin({ ...who, action: 'chat', tool: null, requestedModel: model, stream: false }, day),
    verdict: references.verdict({ decision, clientAddress: address }, day),
    state: decision.outcome === 'deny' ? CALL_STATES.denied : CALL_STATES.settled,
    time,
    status: decision.outcome === 'deny' ? 403 : 200,
  });
}

const INSERT = `
INSERT INTO ledger (number, id, origin, verdict, state, createdAt, requestId, settledAt, statusCode)
VALUES (:number, :id, :origin, :verdict, :state, :time, :id, :time, :status)`;
