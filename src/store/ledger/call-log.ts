import { sql } from 'kysely';
import { type AddressRange, contains, parseAddress } from '../../domain/address.ts';
import { notFound } from '../../domain/errors.ts';
import { idOfBytes, numbersFrom } from '../../domain/id.ts';
import { STORED_TOKENS } from '../../domain/usage.ts';
import type { Database } from '../db/database.ts';
import { type Page, type PageRequest, unknownCursor } from '../db/records.ts';
import { build } from '../db/sql.ts';
import { reasonCode } from './call-index.ts';
import { type CallCriteria, findNumber, findNumbers } from './call-search.ts';
import type { StoredDecision } from './references.ts';
import { CALL_STATES } from './statements.ts';

/** Which calls are wanted; what is absent does not matter. */
export interface CallFilter {
  readonly organizationId: string;
  readonly keyId?: string | undefined;
  /** The owner of the key. */
  readonly memberId?: string | undefined;
  /** Ours. */
  readonly requestId?: string | undefined;
  /** The caller's own. */
  readonly clientRequestId?: string | undefined;
  /** Model that was asked for, or that served. */
  readonly model?: string | undefined;
  /** Provider that served. */
  readonly provider?: string | undefined;
  readonly outcome?: 'permit' | 'deny' | undefined;
  /** `deny_models`: the kind of the rules that denied it. */
  readonly reason?: string | undefined;
  /** Rule that the decision names, among its violations or in its shadow. */
  readonly ruleId?: string | undefined;
  /** Group that the key or its owner was in, as the decision saw it. */
  readonly groupId?: string | undefined;
  /** Milliseconds: only calls that are known to have taken longer. */
  readonly slowerThan?: number | undefined;
  /** In which the caller's address lies. */
  readonly addresses?: AddressRange | undefined;
  /** Rule that would have changed the decision in mode `report`, as it has been since a revision of the organization's rules. */
  readonly reportedBy?: { readonly ruleId: string; readonly revision: number } | undefined;
  /** Epoch ms, inclusive. */
  readonly from?: number | undefined;
  /** Epoch ms, exclusive. */
  readonly to?: number | undefined;
  /** Only calls whose decision is on record. */
  readonly isDecided?: boolean;
}

type CallState = keyof typeof CALL_STATES;

/** By their integers. */
const STATES: readonly CallState[] = ['open', 'settled', 'denied', 'recovered', 'released'];

function stateOf(state: number): CallState {
  const name = STATES.find((each) => CALL_STATES[each] === state);
  if (name === undefined) throw new Error(`There is no state ${state} of calls.`);
  return name;
}

/** Calls of all organizations with their decisions. */
const ofAll = () =>
  build
    .selectFrom('ledger')
    .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
    .leftJoin('call_verdicts', 'call_verdicts.id', 'ledger.verdict')
    .leftJoin('call_targets', 'call_targets.id', 'ledger.target');

const ofOrganization = (organizationId: string) => ofAll().where('call_origins.organizationId', '=', organizationId);

const LEDGER = [
  'ledger.number',
  'ledger.id',
  'ledger.requestId',
  'ledger.clientRequestId',
  'ledger.state',
  'ledger.createdAt',
  'ledger.settledAt',
  'ledger.cost',
  'ledger.priceUnknown',
  'ledger.costDetailsJson',
  ...STORED_TOKENS.map((name) => `ledger.${name}` as const),
  'ledger.usageEstimated',
  'ledger.cached',
  'ledger.statusCode',
  'ledger.errorCode',
  'ledger.tookMs',
  'ledger.timesJson',
] as const;
const ORIGIN = [
  'call_origins.organizationId',
  'call_origins.projectId',
  'call_origins.keyId',
  'call_origins.memberId',
  'call_origins.action',
  'call_origins.tool',
  'call_origins.requestedModel',
  'call_origins.stream',
] as const;

type Calls = ReturnType<typeof ofAll>;

const logged = (calls: Calls) =>
  calls
    .select(LEDGER)
    .select(ORIGIN)
    .select(['call_verdicts.outcome', 'call_verdicts.reasonJson', 'call_verdicts.clientAddress'])
    .select(sql<number | null>`json_array_length(call_verdicts.shadowJson, '$.permitted')`.as('shadowPermitted'))
    .select(['call_targets.providerId', 'call_targets.modelId', 'call_targets.providerKeyId'])
    .select('call_targets.attemptsJson');

type LoggedRow = ReturnType<ReturnType<typeof logged>['execute']> extends Promise<(infer R)[]> ? R : never;

/** A call with its decision, as they stand in the ledger. Amounts in pico-dollars, times in epoch ms. */
export interface LoggedCall
  extends Omit<
    LoggedRow,
    'id' | 'requestId' | 'state' | 'reasonJson' | 'costDetailsJson' | 'attemptsJson' | 'timesJson'
  > {
  readonly id: string;
  readonly decisionId: string;
  readonly requestId: string;
  readonly state: CallState;
  /** `deny_models`; null: it was permitted. */
  readonly reason: string | null;
  /** Number of candidates that would be permitted with the report rules in force; null: there were no report rules. */
  readonly shadowPermitted: number | null;
  readonly costDetails: Record<string, unknown> | null;
  readonly attempts: Record<string, unknown>[] | null;
  /** Undefined: not known. */
  readonly times: CallTimes | undefined;
}

/** Times of a call, in milliseconds from the arrival of the request. */
export interface CallTimes {
  readonly receivingMs: number;
  readonly firstTokenMs: number | null;
  readonly attempts: readonly { readonly startedMs: number; readonly durationMs: number }[];
}

function readTimes(json: string | null): CallTimes | undefined {
  if (json === null) return undefined;
  const [receivingMs, firstTokenMs, ...spans]: [number, number | null, ...number[]] = JSON.parse(json);
  const attempts = spans.flatMap((startedMs, place) =>
    place % 2 === 0 ? [{ startedMs, durationMs: spans[place + 1] ?? 0 }] : [],
  );
  return { receivingMs, firstTokenMs, attempts };
}

function toLogged({ reasonJson, costDetailsJson, attemptsJson, timesJson, ...row }: LoggedRow): LoggedCall {
  const id = idOfBytes(row.id, 'call');
  return {
    ...row,
    id,
    decisionId: idOfBytes(row.id, 'dec'),
    requestId: idOfBytes(row.requestId, 'req'),
    state: stateOf(row.state),
    reason: reasonCode(reasonJson),
    costDetails: costDetailsJson === null ? null : JSON.parse(costDetailsJson),
    attempts: attemptsJson === null ? null : JSON.parse(attemptsJson.replaceAll('"logId":""', `"logId":"${id}"`)),
    times: readTimes(timesJson),
  };
}

/** Calls by their numbers, with what their decisions' ids are made of. */
export const decidedAt = (organizationId: string, numbers: readonly number[]) =>
  ofOrganization(organizationId).select(['ledger.number', 'ledger.id']).where('ledger.number', 'in', numbers);

/** The calls that are wanted, but for those of another reason, request or address, which their rows alone do not tell. */
export function wantedCalls(filter: CallFilter): Calls {
  const { keyId, memberId, groupId, clientRequestId, model, provider, outcome, ruleId, reportedBy, isDecided } = filter;
  let calls = ofOrganization(filter.organizationId);
  if (keyId !== undefined) calls = calls.where('call_origins.keyId', '=', keyId);
  if (memberId !== undefined) calls = calls.where('call_origins.memberId', '=', memberId);
  if (clientRequestId !== undefined) calls = calls.where('ledger.clientRequestId', '=', clientRequestId);
  if (provider !== undefined) calls = calls.where('call_targets.providerId', '=', provider);
  if (outcome !== undefined) calls = calls.where('call_verdicts.outcome', '=', outcome);
  if (isDecided === true) calls = calls.where('ledger.verdict', 'is not', null);
  if (model !== undefined) {
    calls = calls.where(({ eb, or }) =>
      or([eb('call_origins.requestedModel', '=', model), eb('call_targets.modelId', '=', model)]),
    );
  }
  if (ruleId !== undefined) {
    calls = calls.where(
      sql<boolean>`(instr(violationsJson, ${`"${ruleId}"`}) > 0 OR instr(shadowJson, ${`"${ruleId}"`}) > 0)`,
    );
  }
  if (filter.slowerThan !== undefined) calls = calls.where('ledger.tookMs', '>', filter.slowerThan);
  if (groupId !== undefined) calls = calls.where(sql<boolean>`instr(inputJson, ${`"${groupId}"`}) > 0`);
  if (reportedBy !== undefined) {
    calls = calls
      .where('call_verdicts.ruleRevision', '>=', reportedBy.revision)
      .where(sql<boolean>`instr(shadowJson, ${`"${reportedBy.ruleId}"`}) > 0`);
  }
  return calls;
}

/** The rest of what is wanted. */
const isWanted =
  (filter: CallFilter) =>
  ({ reason, requestId, clientAddress }: LoggedCall): boolean =>
    (filter.reason === undefined || reason === filter.reason) &&
    (filter.requestId === undefined || requestId === filter.requestId) &&
    (filter.addresses === undefined || liesIn(filter.addresses, clientAddress));

function liesIn(range: AddressRange, text: string | null): boolean {
  const address = text === null ? null : parseAddress(text);
  return address !== null && contains(range, address);
}

/** Those of the calls of these numbers that are wanted. Not for the serving thread. */
export const readWanted = (
  db: Database,
  numbers: readonly number[],
  filter: CallFilter,
  order: 'asc' | 'desc',
): LoggedCall[] =>
  db
    .all(logged(wantedCalls(filter)).where('ledger.number', 'in', numbers).orderBy('ledger.number', order))
    .map(toLogged)
    .filter(isWanted(filter));

/** Turns the filter into criteria for the index of calls. */
const toWanted = ({
  organizationId: organization,
  isDecided,
  addresses,
  reportedBy,
  ...by
}: CallFilter): CallCriteria => ({
  organization,
  ...named({
    key: by.keyId,
    member: by.memberId,
    request: by.requestId,
    clientRequest: by.clientRequestId,
    model: by.model,
    provider: by.provider,
    outcome: by.outcome,
    reason: by.reason,
    rule: by.ruleId ?? reportedBy?.ruleId,
    group: by.groupId,
  }),
  ...(addresses === undefined ? {} : { addresses }),
  ...(isDecided === true ? { isDecided } : {}),
  ...(by.slowerThan === undefined ? {} : { slowerThan: by.slowerThan }),
});

/** Without those that are undefined. */
const named = (values: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

/** From one number on and before another. */
function numbersOf({ from = 0, to }: CallFilter): { readonly from: number; readonly before: number } {
  return { from: numbersFrom(from), before: to === undefined ? Number.MAX_SAFE_INTEGER : numbersFrom(to) };
}

/** Candidates that are read at once, at least. */
const AT_ONCE = 64;

/**
 * Calls that are wanted, newest first, through the index (call-search.ts). A call's time is that in its id. The cursor is the number
 * of the last call of the page before. Not for the serving thread.
 */
export function searchCalls(db: Database, filter: CallFilter, { limit, cursor }: PageRequest): Page<LoggedCall> {
  const { from, before: end } = numbersOf(filter);
  const before = cursor === undefined ? end : Math.min(end, decodeNumber(cursor));
  const found: LoggedCall[] = [];
  let candidates: number[] = [];
  const read = (): void => {
    if (candidates.length > 0) found.push(...readWanted(db, candidates, filter, 'desc'));
    candidates = [];
  };
  for (const number of findNumbers(db, toWanted(filter), { from, before, order: 'desc' })) {
    candidates.push(number);
    if (candidates.length < Math.max(AT_ONCE, limit + 1 - found.length)) continue;
    read();
    if (found.length > limit) break;
  }
  if (found.length <= limit) read();
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: found.length > limit && last !== undefined ? encodeNumber(last.number) : null };
}

const encodeNumber = (number: number): string => Buffer.from(String(number)).toString('base64url');

function decodeNumber(cursor: string): number {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) throw unknownCursor();
  return Number(text);
}

/** One call of the organization, or a 404. Not for the serving thread. @param id of the call or of its decision */
export function getLoggedCall(db: Database, organizationId: string, id: string): LoggedCall {
  const number = findNumber(db, organizationId, id);
  const [row] =
    number === undefined ? [] : db.all(logged(ofOrganization(organizationId).where('ledger.number', '=', number)));
  if (row === undefined) throw notFound('There is no such call or decision.');
  return toLogged(row);
}

/** A call with the whole of its decision. */
export interface DecidedCall {
  readonly call: LoggedCall;
  readonly decision: Pick<
    StoredDecision,
    'input' | 'violations' | 'shadow' | 'bundleDigest' | 'ruleRevision' | 'dataDigest'
  >;
}

/** With their decisions, in the order of their numbers; calls without one are left out. */
const readDecided = (db: Database, calls: Calls): DecidedCall[] =>
  db
    .all(
      logged(calls)
        .innerJoin('data_documents', 'data_documents.id', 'call_verdicts.document')
        .select(['call_verdicts.violationsJson', 'call_verdicts.shadowJson', 'call_verdicts.inputJson'])
        .select(['call_verdicts.bundleDigest', 'call_verdicts.ruleRevision', 'data_documents.digest'])
        .orderBy('ledger.number'),
    )
    .map(({ violationsJson, shadowJson, inputJson, bundleDigest, ruleRevision, digest, ...row }) => ({
      call: toLogged(row),
      decision: {
        input: JSON.parse(inputJson ?? ''),
        violations: JSON.parse(violationsJson ?? ''),
        shadow: shadowJson === null ? null : JSON.parse(shadowJson),
        bundleDigest: bundleDigest ?? '',
        ruleRevision: ruleRevision ?? 0,
        dataDigest: digest,
      },
    }));

/** Decided calls of all organizations, by their numbers. Not for the serving thread. */
export const readAllDecided = (db: Database, numbers: readonly number[]): DecidedCall[] =>
  readDecided(
    db,
    ofAll().where(sql<boolean>`ledger.number IN (SELECT value FROM json_each(${JSON.stringify(numbers)}))`),
  );

/** Decided calls in one query. */
const DECIDED_AT_ONCE = 500;

/** Decided calls that are wanted, oldest first. Reads many rows: not for the serving thread. */
export function* searchDecided(db: Database, filter: CallFilter): Generator<DecidedCall> {
  let candidates: number[] = [];
  const read = (): DecidedCall[] => {
    const calls = wantedCalls(filter).where('ledger.number', 'in', candidates);
    const found = candidates.length === 0 ? [] : readDecided(db, calls);
    candidates = [];
    return found.filter(({ call }) => isWanted(filter)(call));
  };
  const wanted = toWanted({ ...filter, isDecided: true });
  for (const number of findNumbers(db, wanted, { ...numbersOf(filter), order: 'asc' })) {
    candidates.push(number);
    if (candidates.length === DECIDED_AT_ONCE) yield* read();
  }
  yield* read();
}
