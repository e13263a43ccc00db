import { type AddressRange, InvalidRangeError, parseAddressOrRange } from '../../domain/address.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidField, notFound } from '../../domain/errors.ts';
import { checkRange, parseTime, parseTimeEnd, TIME_FORM } from '../../domain/time.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import type { RefusedFilter } from '../../store/ledger/refused-requests.ts';
import { ownerOfKey } from '../../store/ledger/usage-sums.ts';
import { type Actor, checkSeesKeyOf, seesAllKeys } from '../audit/audit-trail.ts';
import { readAskedMember } from '../usage/usage-query.ts';

const DEFAULT_LIMIT = 50;

const EXPLANATIONS = [
  { at: /^\/(from|to)$/, must: TIME_FORM },
  { at: /^\/limit$/, must: 'must be a whole number from 1 to 200' },
  { at: /^\/slowerThan$/, must: 'must be a whole number of milliseconds, at most 999999999' },
  { at: /^\/reason$/, must: 'must be a rule type, such as deny_models' },
  { at: /^\/(requestId|ruleId|groupId)$/, must: 'must be an id: its prefix and 32 hexadecimal digits' },
];

/** A search of the log, checked. */
export interface LogRequest {
  readonly filter: CallFilter;
  readonly page: PageRequest;
}

/**
 * Reads what is searched for, and whether the actor may: developers see their own keys only. Malformed 400; a key or member that the
 * organization never had, and a developer's question about another's key, 404; about another member 403.
 * @param query as `LogQuery`, unchecked
 */
export function readLogRequest(db: Database, actor: Actor, query: unknown): LogRequest {
  const asked = checkShape(validator('LogQuery'), query, EXPLANATIONS);
  const { limit = String(DEFAULT_LIMIT), cursor, from: begin, to: end, address, memberId, slowerThan, ...by } = asked;
  const from = begin === undefined ? undefined : parseTime(begin, '/from');
  const to = end === undefined ? undefined : parseTimeEnd(end, '/to');
  if (from !== undefined && to !== undefined) checkRange(from, to);
  if (by.keyId !== undefined) {
    const owner = ownerOfKey(db, actor.organizationId, by.keyId);
    if (owner === undefined) throw notFound('There is no such key.');
    checkSeesKeyOf(actor, owner);
  }
  const member = readAskedMember(db, actor, memberId, 'calls');
  const filter = {
    ...by,
    organizationId: actor.organizationId,
    memberId: member,
    addresses: readAddresses(address),
    slowerThan: slowerThan === undefined ? undefined : Number(slowerThan),
    from,
    to,
  };
  return { filter, page: { limit: Number(limit), cursor } };
}

const DEFAULT_RANGE_MS = 7 * 86_400_000;

/** A search for all calls of a range of time. Epoch ms, `to` exclusive. */
export type RangeFilter = CallFilter & { readonly from: number; readonly to: number };

/** As `readLogRequest`; the range is the seven days before `to`, and that is now, unless it is said otherwise. */
export function readRangeFilter(db: Database, actor: Actor, query: unknown, now: number): RangeFilter {
  const { filter } = readLogRequest(db, actor, query);
  const { to = now } = filter;
  const { from = Math.max(0, to - DEFAULT_RANGE_MS) } = filter;
  checkRange(from, to, filter.to === undefined);
  return { ...filter, from, to };
}

function readAddresses(text: string | undefined): AddressRange | undefined {
  if (text === undefined) return undefined;
  try {
    return parseAddressOrRange(text);
  } catch (error) {
    if (!(error instanceof InvalidRangeError)) throw error;
    throw invalidField('/address', `: ${error.message}`);
  }
}

/** A search for refused requests, checked. */
export interface RefusedListRequest {
  readonly filter: RefusedFilter;
  readonly page: PageRequest;
}

/** As `readLogRequest`, of refused requests. @param query as `RefusedRequestQuery`, unchecked */
export function readRefusedListRequest(db: Database, actor: Actor, query: unknown): RefusedListRequest {
  const { status, code, ...asked } = checkShape(validator('RefusedRequestQuery'), query, [
    ...EXPLANATIONS,
    { at: /^\/status$/, must: 'must be a status from 400 to 599' },
    { at: /^\/code$/, must: 'must be the code of an error, such as invalid_api_key' },
  ]);
  const { filter, page } = readLogRequest(db, actor, asked);
  const { organizationId, keyId, memberId, from, to } = filter;
  const statusCode = status === undefined ? undefined : Number(status);
  return { filter: { organizationId, keyId, memberId, statusCode, errorCode: code, from, to }, page };
}

/** Callers whose calls may be shown. */
export interface SeenBy {
  readonly organizationId: string;
  /** Undefined: everyone's. */
  readonly memberId: string | undefined;
}

export const seenBy = (actor: Actor): SeenBy => ({
  organizationId: actor.organizationId,
  memberId: actor.kind === 'cli' || seesAllKeys(actor) ? undefined : actor.memberId,
});
