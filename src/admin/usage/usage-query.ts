import { checkShape } from '../../domain/check-shape.ts';
import { ApiError, invalidRequest, notFound, permissionDenied } from '../../domain/errors.ts';
import { checkRange, DAY, parseTime, parseTimeEnd, TIME_FORM } from '../../domain/time.ts';
import type { Usage, UsageQuery } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { DatabaseThread } from '../../store/db/database-thread.ts';
import { isOrWasThere, ownerOfKey, type UsageDimension, type UsageFilter } from '../../store/ledger/usage-sums.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { type Actor, checkSeesKeyOf, seesAllKeys } from '../audit/audit-trail.ts';

const MAX_DAYS = { hour: 31, day: 366, total: 366 } as const;
const DEFAULT_DAYS = 7;
const DEFAULT_LIMIT = 1000;

const EXPLANATIONS = [
  { at: /^\/(from|to)$/, must: TIME_FORM },
  { at: /^\/groupBy$/, must: 'must be a comma list of member, model, provider, project, key' },
  { at: /^\/limit$/, must: 'must be a whole number from 1 to 10000' },
];

/** A checked request for a usage report. Times in epoch ms, `to` exclusive. */
export interface UsageRequest extends UsageFilter {
  readonly from: number;
  readonly to: number;
  readonly granularity: Usage['granularity'];
  /** Each once. */
  readonly groupBy: readonly UsageDimension[];
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly format: 'json' | 'csv';
}

/**
 * Reads what is asked for, and whether the actor may: developers see their own keys only. Malformed 400; a project, key or
 * member that the organization never had 404; for a developer other members 403.
 * @param query as `UsageQuery`, unchecked. @param now epoch ms
 */
export function readUsageRequest(db: Database, actor: Actor, query: unknown, now: number): UsageRequest {
  const asked = checkShape(validator('UsageQuery'), query, EXPLANATIONS);
  const { granularity = 'day', limit = String(DEFAULT_LIMIT), format = 'json', cursor } = asked;
  return {
    ...filterOf(db, actor, asked),
    ...rangeOf(asked, granularity, now),
    granularity,
    groupBy: dimensionsOf(asked.groupBy),
    limit: Number(limit),
    cursor,
    format,
  };
}

const DIMENSIONS: readonly UsageDimension[] = ['member', 'model', 'provider', 'project', 'key'];

/** In the order of the columns, whatever the order in which they were named. */
const dimensionsOf = (groupBy = ''): UsageDimension[] =>
  DIMENSIONS.filter((dimension) => groupBy.split(',').includes(dimension));

function rangeOf(
  { from, to }: UsageQuery,
  granularity: Usage['granularity'],
  now: number,
): Pick<UsageRequest, 'from' | 'to'> {
  const end = to === undefined ? now : parseTimeEnd(to, '/to');
  const begin = from === undefined ? dayOf(end - 1) - (DEFAULT_DAYS - 1) * DAY : parseTime(from, '/from');
  checkRange(begin, end, to === undefined);
  const days = MAX_DAYS[granularity];
  if (end - begin > days * DAY) {
    throw invalidRequest(`A report by ${granularity} spans at most ${days} days.`, '/from');
  }
  return { from: begin, to: end };
}

const dayOf = (time: number): number => time - (time % DAY);

function filterOf(db: Database, actor: Actor, { projectId, keyId, memberId }: UsageQuery): UsageFilter {
  const { organizationId } = actor;
  if (projectId !== undefined && !isOrWasThere(db, 'projects', organizationId, projectId)) {
    throw notFound('There is no such project.');
  }
  if (keyId !== undefined) {
    const owner = ownerOfKey(db, organizationId, keyId);
    if (owner === undefined) throw notFound('There is no such key.');
    checkSeesKeyOf(actor, owner);
  }
  return { organizationId, projectId, keyId, memberId: readAskedMember(db, actor, memberId, 'usage') };
}

/**
 * The member whose keys are asked about, by id or e-mail; undefined: all. For a developer they are their own, or 403.
 * @param what of the keys, for the message
 */
export function readAskedMember(
  db: Database,
  actor: Actor,
  wanted: string | undefined,
  what: 'usage' | 'calls',
): string | undefined {
  const { organizationId } = actor;
  if (actor.kind !== 'cli' && !seesAllKeys(actor)) {
    if (wanted === undefined || wanted === actor.memberId) return actor.memberId;
    throw permissionDenied(`Developers can only see the ${what} of their own keys.`);
  }
  if (wanted === undefined) return undefined;
  // The address of a member who has left may be another's now.
  if (wanted.includes('@')) return getMember(db, organizationId, wanted).id;
  if (!isOrWasThere(db, 'members', organizationId, wanted)) throw notFound('There is no such member.');
  return wanted;
}

/** A page of a report, in the format that was asked for. */
export interface ReportedUsage {
  readonly bytes: Uint8Array;
  readonly nextCursor: string | null;
}

/** A report is asked of the thread that reads the database. */
export interface UsageQuestion {
  readonly what: 'usage';
  readonly request: UsageRequest;
}

/** Sums up calls outside the serving thread. */
export interface UsageReporter {
  /** @throws ApiError: of the request itself, 503 when too many wait, 504 when it takes too long */
  report(request: UsageRequest): Promise<ReportedUsage>;
}

/** @param limitMs milliseconds that one page may take */
export function createUsageReporter(reader: DatabaseThread, limitMs = 30_000): UsageReporter {
  const tooSlow = (): ApiError =>
    new ApiError(
      504,
      'report_timeout',
      `The report takes longer than ${limitMs} ms: ask for less, or use the command line.`,
    );
  return {
    report(request) {
      const question: UsageQuestion = { what: 'usage', request };
      return reader.ask(request.organizationId, question, { limitMs, tooSlow });
    },
  };
}
