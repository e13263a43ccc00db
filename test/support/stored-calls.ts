import type { Selectable } from 'kysely';
import { bytesOfId, dayOfNumber, idsFrom, newId, numbersFrom } from '../../src/domain/id.ts';
import type { CallsView } from '../../src/store/db/call-tables.ts';
import type { Database } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import { giveUpBlocks, sealBefore } from '../../src/store/ledger/call-seals.ts';
import { type CallReferences, createCallReferences, type DecisionRecord } from '../../src/store/ledger/references.ts';
import type { RefusedRequest } from '../../src/store/ledger/refused-requests.ts';
import { CALL_STATES } from '../../src/store/ledger/statements.ts';

let calls = 0;

/** Prepared once: preparing takes longer than inserting. */
const known = new WeakMap<Database, CallReferences>();

function referencesOf(db: Database): CallReferences {
  const references = known.get(db) ?? createCallReferences(db);
  known.set(db, references);
  return references;
}

type Whose = 'organizationId' | 'projectId' | 'keyId' | 'memberId';
type Told =
  | 'requestedModel'
  | 'providerId'
  | 'modelId'
  | 'settledAt'
  | 'cost'
  | 'priceUnknown'
  | 'promptTokens'
  | 'completionTokens'
  | 'reasoningTokens'
  | 'cachedTokens'
  | 'cacheWriteTokens'
  | 'usageEstimated'
  | 'cached'
  | 'state'
  | 'statusCode'
  | 'errorCode'
  | 'clientRequestId'
  | 'clientAddress'
  | 'requestId'
  | 'attemptsJson';

export type StoredCall = Pick<Selectable<CallsView>, Whose> &
  Partial<Pick<Selectable<CallsView>, Told>> & { readonly tookMs?: number | null };

/** What is stored of a call, and the id that it got. */
export interface Stored {
  readonly id: string;
  readonly number: number;
}

/** Stores a call as the ledger leaves it: settled, and answered with 200, unless it is said otherwise; without a decision unless one is given. */
export function insertCall(
  db: Database,
  time: number | string,
  call: StoredCall,
  decision?: DecisionRecord,
  references: CallReferences = referencesOf(db),
): Stored {
  const { organizationId, projectId, keyId, memberId, requestedModel = 'large', ...told } = call;
  const { providerId = null, modelId = null, attemptsJson = null, state = 'settled', ...rest } = told;
  const { requestId = newId('req'), clientAddress = null, ...row } = rest;
  const at = new Date(time).getTime();
  calls += 1;
  const id = idsFrom('call', at).slice(0, -8) + calls.toString(16).padStart(8, '0');
  const number = numbersFrom(at) + (calls % 2000);
  const day = dayOfNumber(number);
  const whose = { organizationId, projectId, keyId, memberId };
  const asked = { action: 'chat', tool: null, requestedModel, stream: false };
  const target = { providerId, modelId, providerKeyId: null, attemptsJson };
  db.run(
    build.insertInto('ledger').values({
      number,
      id: bytesOfId(id),
      origin: references.origin({ ...whose, ...asked }, day),
      verdict: decision === undefined ? null : references.verdict({ decision, clientAddress }, day),
      target: references.target(target, id, day),
      state: CALL_STATES[state],
      requestId: bytesOfId(requestId),
      clientRequestId: null,
      createdAt: at,
      settledAt: at,
      statusCode: 200,
      ...row,
    }),
  );
  return { id, number };
}

/** Seals the calls before a time and gives up their blocks, as the job does before it deletes calls. */
export function giveUpCalls(db: Database, before: number, now = Date.now()): void {
  while (sealBefore(db, numbersFrom(before), now));
  giveUpBlocks(db, numbersFrom(before), now);
}

/** A refused request of no known key, unless it is said otherwise. */
export const storedRefusal = (changes: Partial<RefusedRequest>): RefusedRequest => ({
  id: newId('req'),
  clientRequestId: null,
  organizationId: null,
  projectId: null,
  keyId: null,
  memberId: null,
  statusCode: 401,
  errorCode: 'api_key_expired',
  message: null,
  detail: null,
  endpoint: 'POST /v1/chat/completions',
  requestedModel: null,
  clientAddress: null,
  userAgent: null,
  unrecorded: 0,
  ...changes,
});
