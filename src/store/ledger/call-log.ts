import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import { bytesOfId, idOfBytes } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { type Page, type PageRequest, unknownCursor } from '../db/page.ts';
import { build } from '../db/sql.ts';
import { findNumbers, reasonCode } from './call-index.ts';
import { earliestNumber, numbersFrom } from './call-number.ts';
import type { StoredDecision } from './decisions.ts';
import { CALL_STATES } from './ledger-statements.ts';

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
  /** That was asked for, or that served. */
  readonly model?: string | undefined;
  /** That served. */
  readonly provider?: string | undefined;
  readonly outcome?: 'permit' | 'deny' | undefined;
  /** `deny_models`: the kind of the rules that denied it. */
  readonly reason?: string | undefined;
  /** That the decision names, among its violations or in its shadow. */
  readonly ruleId?: string | undefined;
  /** That the key or its owner was in, as the decision saw it. */
  readonly groupId?: string | undefined;
  /** Canonical. */
  readonly clientAddress?: string | undefined;
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

/** Calls of the organization with their decisions, by their numbers. */
const ofOrganization = (organizationId: string) =>
  build
    .selectFrom('ledger')
    .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
    .leftJoin('call_verdicts', 'call_verdicts.id', 'ledger.verdict')
    .leftJoin('call_targets', 'call_targets.id', 'ledger.target')
    .where('call_origins.organizationId', '=', organizationId);

const LEDGER = [
  'ledger.number',
  'ledger.id',
  'ledger.decisionId',
  'ledger.requestId',
  'ledger.clientRequestId',
  'ledger.state',
  'ledger.createdAt',
  'ledger.settledAt',
  'ledger.cost',
  'ledger.priceUnknown',
  'ledger.costDetailsJson',
  'ledger.promptTokens',
  'ledger.completionTokens',
  'ledger.reasoningTokens',
  'ledger.cachedTokens',
  'ledger.cacheWriteTokens',
  'ledger.usageEstimated',
  'ledger.cached',
  'ledger.statusCode',
  'ledger.errorCode',
] as const;
const ORIGIN = [
  'call_origins.projectId',
  'call_origins.keyId',
  'call_origins.memberId',
  'call_origins.action',
  'call_origins.tool',
  'call_origins.requestedModel',
  'call_origins.stream',
] as const;

const logged = (calls: ReturnType<typeof ofOrganization>) =>
  calls
    .select(LEDGER)
    .select(ORIGIN)
    .select(['call_verdicts.outcome', 'call_verdicts.reasonJson', 'call_verdicts.clientAddress'])
    .select(['call_targets.providerId', 'call_targets.modelId', 'call_targets.providerKeyId'])
    .select('call_targets.attemptsJson');

const loggedAt = (calls: ReturnType<typeof ofOrganization>, numbers: readonly number[]) =>
  logged(calls).where('ledger.number', 'in', numbers).orderBy('ledger.number', 'desc');

type Row = ReturnType<ReturnType<typeof loggedAt>['execute']> extends Promise<(infer R)[]> ? R : never;

/** A call with its decision, as they stand in the ledger. Amounts in pico-dollars, times in epoch ms. */
export interface LoggedCall
  extends Omit<Row, 'id' | 'decisionId' | 'requestId' | 'state' | 'reasonJson' | 'costDetailsJson' | 'attemptsJson'> {
  readonly id: string;
  readonly decisionId: string;
  readonly requestId: string;
  readonly state: CallState;
  /** `deny_models`; null: it was permitted. */
  readonly reason: string | null;
  readonly costDetails: Record<string, unknown> | null;
  readonly attempts: Record<string, unknown>[] | null;
}

function toLogged({ reasonJson, costDetailsJson, attemptsJson, ...row }: Row): LoggedCall {
  const id = idOfBytes(row.id, 'call');
  return {
    ...row,
    id,
    decisionId: idOfBytes(row.decisionId ?? row.id, 'dec'),
    requestId: idOfBytes(row.requestId, 'req'),
    state: stateOf(row.state),
    reason: reasonCode(reasonJson),
    costDetails: costDetailsJson === null ? null : JSON.parse(costDetailsJson),
    attempts: attemptsJson === null ? null : JSON.parse(attemptsJson.replaceAll('"logId":""', `"logId":"${id}"`)),
  };
}

/** Calls by their numbers, with what their decisions' ids are made of. */
export const decidedAt = (organizationId: string, numbers: readonly number[]) =>
  ofOrganization(organizationId)
    .select(['ledger.number', 'ledger.id', 'ledger.decisionId'])
    .where('ledger.number', 'in', numbers);

/** The calls that are wanted, but for those of another reason or request, which their rows alone do not tell. */
export function wantedCalls(filter: CallFilter): ReturnType<typeof ofOrganization> {
  const { keyId, memberId, groupId, clientRequestId, model, provider, outcome, ruleId, clientAddress, isDecided } =
    filter;
  let query = ofOrganization(filter.organizationId);
  if (keyId !== undefined) query = query.where('call_origins.keyId', '=', keyId);
  if (memberId !== undefined) query = query.where('call_origins.memberId', '=', memberId);
  if (clientRequestId !== undefined) query = query.where('ledger.clientRequestId', '=', clientRequestId);
  if (provider !== undefined) query = query.where('call_targets.providerId', '=', provider);
  if (outcome !== undefined) query = query.where('call_verdicts.outcome', '=', outcome);
  if (clientAddress !== undefined) query = query.where('call_verdicts.clientAddress', '=', clientAddress);
  if (isDecided === true) query = query.where('ledger.verdict', 'is not', null);
  if (model !== undefined) {
    query = query.where(({ eb, or }) =>
      or([eb('call_origins.requestedModel', '=', model), eb('call_targets.modelId', '=', model)]),
    );
  }
  if (ruleId !== undefined) {
    query = query.where(
      sql<boolean>`(instr(violationsJson, ${`"${ruleId}"`}) > 0 OR instr(shadowJson, ${`"${ruleId}"`}) > 0)`,
    );
  }
  if (groupId !== undefined) query = query.where(sql<boolean>`instr(inputJson, ${`"${groupId}"`}) > 0`);
  return query;
}

/** The rows of these numbers that are what is wanted: a code of the index does not tell. */
const readWanted = (db: Database, numbers: readonly number[], filter: CallFilter): LoggedCall[] =>
  db
    .all(loggedAt(wantedCalls(filter), numbers))
    .map(toLogged)
    .filter(
      ({ reason, requestId }) =>
        (filter.reason === undefined || reason === filter.reason) &&
        (filter.requestId === undefined || requestId === filter.requestId),
    );

/** Candidates that are read at once, at least. */
const AT_ONCE = 64;

/**
 * Calls that are wanted, newest first, through the index of `call-index.ts`. A call's time is that in its id. The cursor is the number
 * of the last call of the page before. Not for the serving thread.
 */
export function searchCalls(db: Database, filter: CallFilter, { limit, cursor }: PageRequest): Page<LoggedCall> {
  const { organizationId: organization, from = 0, to, ...by } = filter;
  const end = to === undefined ? Number.MAX_SAFE_INTEGER : numbersFrom(to);
  const before = cursor === undefined ? end : Math.min(end, decodeNumber(cursor));
  const wanted = {
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
      rule: by.ruleId,
      group: by.groupId,
      address: by.clientAddress,
    }),
    ...(by.isDecided === true ? { isDecided: true } : {}),
  };
  const found: LoggedCall[] = [];
  let candidates: number[] = [];
  const read = (): void => {
    if (candidates.length > 0) found.push(...readWanted(db, candidates, filter));
    candidates = [];
  };
  for (const number of findNumbers(db, wanted, numbersFrom(from), before)) {
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

/** Without those that are undefined. */
const named = (values: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

const encodeNumber = (number: number): string => Buffer.from(String(number)).toString('base64url');

function decodeNumber(cursor: string): number {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) throw unknownCursor();
  return Number(text);
}

/**
 * One call of the organization, or a 404. Its row, or no row of another organization, is among those from its time on, and most often
 * the first: what is not there takes longest. Not for the serving thread. @param id of the call or of its decision
 */
export function getLoggedCall(db: Database, organizationId: string, id: string): LoggedCall {
  const bytes = bytesOfId(id);
  const rows = ofOrganization(organizationId).select('ledger.number').where('ledger.number', '>=', earliestNumber(id));
  const ofId = id.startsWith('dec_')
    ? rows.where(({ fn }) => sql<boolean>`${fn.coalesce('ledger.decisionId', 'ledger.id')} = ${bytes}`)
    : rows.where('ledger.id', '=', bytes);
  const place = db.get(ofId.limit(1));
  const row = place === undefined ? undefined : db.get(loggedAt(ofOrganization(organizationId), [place.number]));
  if (row === undefined) throw notFound('There is no such call.');
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

/** Decided calls of the organization, oldest first, from one number to before another, both exclusive. Reads many rows. */
export const listDecided = (
  db: Database,
  organizationId: string,
  after: number,
  before: number,
  limit: number,
): DecidedCall[] =>
  db
    .all(
      logged(ofOrganization(organizationId))
        .innerJoin('data_documents', 'data_documents.id', 'call_verdicts.document')
        .select(['call_verdicts.violationsJson', 'call_verdicts.shadowJson', 'call_verdicts.inputJson'])
        .select(['call_verdicts.bundleDigest', 'call_verdicts.ruleRevision', 'data_documents.digest'])
        .where('ledger.number', '>', after)
        .where('ledger.number', '<', before)
        .orderBy('ledger.number')
        .limit(limit),
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
