import { type RawBuilder, sql } from 'kysely';
import { numbersFrom } from '../../domain/id.ts';
import { STORED_TOKENS, type StoredTokens } from '../../domain/usage.ts';
import type { KeptUsageTable } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { bind, build, exactSum, prepare, sumOf } from '../db/sql.ts';

export type UsageDimension = 'member' | 'model' | 'provider' | 'project' | 'key';

/** Subjects whose calls are counted. */
export interface UsageFilter {
  readonly organizationId: string;
  readonly projectId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly memberId?: string | undefined;
}

export interface UsageSums extends StoredTokens {
  /** By dimension; those that were not asked for are null. */
  readonly of: Readonly<Record<UsageDimension, string | null>>;
  readonly calls: number;
  readonly errors: number;
  readonly denied: number;
  /** Refused because a limit of the key or a budget left no room; no errors. */
  readonly limitRefusals: number;
  readonly cacheHits: number;
  readonly estimatedCalls: number;
  /** Calls that needed a price which is not known. */
  readonly unknownPriceCalls: number;
  /** Pico-dollars; what has no known price is left out. */
  readonly cost: bigint;
}

/** Exact up to 2^53, which is as much as a JSON number holds; unlike `sum` it never fails. */
const total = (column: string) => sql<number>`total(${sql.ref(column)})`;

/** Refused because a limit of the key or a budget left no room. */
const OVER_LIMIT = sql<boolean>`(state = 'released' AND errorCode IN ('usage_limit_reached', 'budget_reserved'))`;

/** The sums over the calls that a query selects, next to its own columns. */
export const usageSums = [
  sql<number>`count(*)`.as('calls'),
  sql<number>`count(*) FILTER (WHERE state <> 'denied' AND NOT ${OVER_LIMIT} AND (statusCode >= 400 OR state = 'recovered'))`.as(
    'errors',
  ),
  sql<number>`count(*) FILTER (WHERE state = 'denied')`.as('denied'),
  sql<number>`count(*) FILTER (WHERE ${OVER_LIMIT})`.as('limitRefusals'),
  sql<number>`coalesce(sum(cached), 0)`.as('cacheHits'),
  sql<number>`coalesce(sum(usageEstimated), 0)`.as('estimatedCalls'),
  sql<number>`coalesce(sum(priceUnknown), 0)`.as('unknownPriceCalls'),
  ...STORED_TOKENS.map((name) => total(name).as(name)),
  ...exactSum('cost', 'cost'),
];

/** Names of the organization's custom providers, those that were deleted too. */
const customNames = (db: Database, organizationId: string): string[] =>
  db
    .all(build.selectFrom('custom_providers').select('name').distinct().where('organizationId', '=', organizationId))
    .map(({ name }) => name);

type Columns = Readonly<Record<UsageDimension, RawBuilder<string | null>>>;

/** The model under which a call is counted: the one that answered, else the one that was asked for. */
export const countedModel = sql<string>`coalesce(modelId, requestedModel)`;

/** Columns under which sums are counted, by dimension. A custom model goes by its one name, `<custom>/<model>`. */
const columnsFor = (custom: readonly string[], model: RawBuilder<string | null>): Columns => ({
  member: sql`memberId`,
  model:
    custom.length === 0
      ? model
      : sql`CASE
          WHEN modelId <> '' AND providerId IN (${sql.join(custom.map((name) => sql.lit(name)))}) THEN providerId || '/' || modelId
          ELSE ${model} END`,
  provider: sql`nullif(providerId, '')`,
  project: sql`projectId`,
  key: sql`keyId`,
});

/** Columns that sums are grouped by; null for other dimensions. */
function dimensions(groupBy: readonly UsageDimension[], columns: Columns) {
  const column = (dimension: UsageDimension) =>
    groupBy.includes(dimension) ? columns[dimension] : sql<string | null>`NULL`;
  return [
    column('member').as('memberId'),
    column('model').as('modelId'),
    column('provider').as('providerId'),
    column('project').as('projectId'),
    column('key').as('keyId'),
  ] as const;
}

/** Counts of a report, in the order of `usageSums`, of its columns in the CSV, and of what is kept of deleted calls. */
export const COUNTS = [
  'calls',
  'errors',
  'denied',
  'limitRefusals',
  'cacheHits',
  'estimatedCalls',
  'unknownPriceCalls',
  ...STORED_TOKENS,
] as const satisfies readonly (keyof KeptUsageTable)[];

/** The columns of `usageSums`, kept of calls that retention has deleted. */
export const KEPT_SUMS = [...COUNTS, 'costHigh', 'costLow'] as const;

/** As a subquery: with bare parameters SQLite plans the statement again for every value. */
const once = <T extends string | number>(value: T | RawBuilder<T>): RawBuilder<T> => sql<T>`(SELECT ${value})`;

/** Sums of the usage kept of deleted calls, by the hours that begin in the range. */
function keptSums(filter: UsageFilter, groupBy: readonly UsageDimension[], columns: Columns) {
  const sum = (name: (typeof COUNTS)[number]) => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`;
  const amount = (name: 'costHigh' | 'costLow') => sql<bigint>`coalesce(sum(${sql.ref(name)}), 0)`;
  let query = build
    .selectFrom('kept_usage')
    .select([
      ...COUNTS.map((name) => sum(name).as(name)),
      amount('costHigh').as('costHigh'),
      amount('costLow').as('costLow'),
    ])
    .select(dimensions(groupBy, columns))
    .where('hour', '>=', once(bind<number>('from')))
    .where('hour', '<', once(bind<number>('to')))
    .where('organizationId', '=', once(filter.organizationId));
  if (filter.projectId !== undefined) query = query.where('projectId', '=', once(filter.projectId));
  if (filter.keyId !== undefined) query = query.where('keyId', '=', once(filter.keyId));
  if (filter.memberId !== undefined) query = query.where('memberId', '=', once(filter.memberId));
  return groupBy.length === 0 ? query : query.groupBy(groupBy.map((dimension) => columns[dimension]));
}

function compileSums(db: Database, filter: UsageFilter, groupBy: readonly UsageDimension[]) {
  const custom = groupBy.includes('model') ? customNames(db, filter.organizationId) : [];
  const columns = columnsFor(custom, countedModel);
  let query = build
    .selectFrom('calls')
    .select(usageSums)
    .select(dimensions(groupBy, columns))
    .where('number', '>=', once(bind<number>('first')))
    .where('number', '<', once(bind<number>('end')))
    .where('organizationId', '=', once(filter.organizationId));
  if (filter.projectId !== undefined) query = query.where('projectId', '=', once(filter.projectId));
  if (filter.keyId !== undefined) query = query.where('keyId', '=', once(filter.keyId));
  if (filter.memberId !== undefined) query = query.where('memberId', '=', once(filter.memberId));
  if (groupBy.length > 0) query = query.groupBy(groupBy.map((dimension) => columns[dimension]));
  // One statement, so that a call that is deleted meanwhile is counted once.
  return query.unionAll(keptSums(filter, groupBy, columnsFor(custom, sql`nullif(modelId, '')`))).compile();
}

/**
 * Sums of the calls that were made from `from` to before `to` (epoch ms), one for each combination of dimensions that has any, and
 * another one where some of its calls were deleted. Of those, the hours that begin in the range count whole.
 */
export type SumUsage = (from: number, to: number) => UsageSums[];

/**
 * A call's time is that in its id, which differs from `created_at` by the milliseconds until the row was written: so a report
 * reads a range of the primary key, and calls pay for no index by time. Reads every call of the range: not for the serving thread.
 */
export function prepareUsageSums(db: Database, filter: UsageFilter, groupBy: readonly UsageDimension[]): SumUsage {
  const statement = prepare(db.connection, compileSums(db, filter, groupBy));
  return (from, to) =>
    statement
      .all({ first: numbersFrom(from), end: numbersFrom(to), from, to })
      .filter(({ calls }) => calls > 0) // Without dimensions there is always a row.
      .map(({ memberId, modelId, providerId, projectId, keyId, costHigh, costLow, ...counts }) => ({
        of: { member: memberId, model: modelId, provider: providerId, project: projectId, key: keyId },
        ...counts,
        cost: sumOf(costHigh, costLow),
      }));
}

/** The owner of a key, also of a deleted one; undefined when the organization has no such key. */
export const ownerOfKey = (db: Database, organizationId: string, id: string): string | undefined =>
  db.get(build.selectFrom('keys').select('createdBy').where('organizationId', '=', organizationId).where('id', '=', id))
    ?.createdBy;

/** Whether the organization has, or had, this project or member. */
export const isOrWasThere = (
  db: Database,
  table: 'projects' | 'members',
  organizationId: string,
  id: string,
): boolean =>
  db.get(build.selectFrom(table).select('id').where('organizationId', '=', organizationId).where('id', '=', id)) !==
  undefined;
