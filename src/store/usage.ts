import { sql } from 'kysely';
import { idsFrom } from '../domain/id.ts';
import type { Database } from './database.ts';
import { bind, build, prepare } from './sql.ts';
import type { KeptUsageTable } from './tables.ts';

/** Columns of a call by which usage can be told apart. */
export const USAGE_COLUMNS = {
  member: 'member_id',
  model: 'model_id',
  provider: 'provider_id',
  project: 'project_id',
  key: 'key_id',
} as const;

export type UsageDimension = keyof typeof USAGE_COLUMNS;

/** Whose calls are counted. */
export interface UsageFilter {
  readonly organizationId: string;
  readonly projectId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly memberId?: string | undefined;
}

export interface UsageSums {
  /** By dimension; those that were not asked for are null. */
  readonly of: Readonly<Record<UsageDimension, string | null>>;
  readonly calls: number;
  readonly errors: number;
  readonly denied: number;
  readonly cacheHits: number;
  readonly estimatedCalls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  /** Pico-dollars. */
  readonly cost: bigint;
}

/** SQLite's sum of integers fails beyond 64 bits, and two of the largest amounts are beyond: they are added up in two halves. */
const HALF = 1_000_000_000n;

/** Exact up to 2^53, as far as a JSON number goes; unlike `sum` it never fails. */
const total = (column: string) => sql<number>`total(${sql.ref(column)})`;

/** The sums over the calls that a query selects, next to its own columns. */
export const usageSums = [
  sql<number>`count(*)`.as('calls'),
  sql<number>`count(*) FILTER (WHERE state <> 'denied' AND (status_code >= 400 OR state = 'recovered'))`.as('errors'),
  sql<number>`count(*) FILTER (WHERE state = 'denied')`.as('denied'),
  sql<number>`coalesce(sum(cached), 0)`.as('cache_hits'),
  sql<number>`coalesce(sum(usage_estimated), 0)`.as('estimated_calls'),
  total('prompt_tokens').as('prompt_tokens'),
  total('completion_tokens').as('completion_tokens'),
  total('reasoning_tokens').as('reasoning_tokens'),
  total('cached_tokens').as('cached_tokens'),
  total('cache_write_tokens').as('cache_write_tokens'),
  sql<bigint>`coalesce(sum(cost_pico / ${sql.raw(String(HALF))}), 0)`.as('high_pico'),
  sql<bigint>`coalesce(sum(cost_pico % ${sql.raw(String(HALF))}), 0)`.as('low_pico'),
];

/** The columns of `usageSums`: what is kept of calls that retention has deleted. */
export const KEPT_SUMS = [
  'calls',
  'errors',
  'denied',
  'cache_hits',
  'estimated_calls',
  'prompt_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'high_pico',
  'low_pico',
] as const satisfies readonly (keyof KeptUsageTable)[];

/** The same of what is kept of deleted calls, by the hours that begin in the range. */
function keptSums(filter: UsageFilter, groupBy: readonly UsageDimension[]) {
  const column = (dimension: UsageDimension) =>
    groupBy.includes(dimension) ? sql`nullif(${sql.ref(USAGE_COLUMNS[dimension])}, '')` : sql.raw('NULL');
  const sum = (name: (typeof KEPT_SUMS)[number]) => sql<number>`coalesce(sum(${sql.ref(name)}), 0)`;
  const amount = (name: 'high_pico' | 'low_pico') => sql<bigint>`coalesce(sum(${sql.ref(name)}), 0)`;
  let query = build
    .selectFrom('kept_usage')
    .select([
      sum('calls').as('calls'),
      sum('errors').as('errors'),
      sum('denied').as('denied'),
      sum('cache_hits').as('cache_hits'),
      sum('estimated_calls').as('estimated_calls'),
      sum('prompt_tokens').as('prompt_tokens'),
      sum('completion_tokens').as('completion_tokens'),
      sum('reasoning_tokens').as('reasoning_tokens'),
      sum('cached_tokens').as('cached_tokens'),
      sum('cache_write_tokens').as('cache_write_tokens'),
      amount('high_pico').as('high_pico'),
      amount('low_pico').as('low_pico'),
    ])
    .select([
      sql<string | null>`${column('member')}`.as('member_id'),
      sql<string | null>`${column('model')}`.as('model_id'),
      sql<string | null>`${column('provider')}`.as('provider_id'),
      sql<string | null>`${column('project')}`.as('project_id'),
      sql<string | null>`${column('key')}`.as('key_id'),
    ])
    .where('hour', '>=', bind<number>('from'))
    .where('hour', '<', bind<number>('to'))
    .where('organization_id', '=', filter.organizationId);
  if (filter.projectId !== undefined) query = query.where('project_id', '=', filter.projectId);
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId);
  if (filter.memberId !== undefined) query = query.where('member_id', '=', filter.memberId);
  return groupBy.length === 0 ? query : query.groupBy(groupBy.map((dimension) => USAGE_COLUMNS[dimension]));
}

function compileSums(filter: UsageFilter, groupBy: readonly UsageDimension[]) {
  const column = (dimension: UsageDimension) =>
    groupBy.includes(dimension) ? sql.ref(USAGE_COLUMNS[dimension]) : sql.raw('NULL');
  let query = build
    .selectFrom('calls')
    .select(usageSums)
    .select([
      sql<string | null>`${column('member')}`.as('member_id'),
      sql<string | null>`${column('model')}`.as('model_id'),
      sql<string | null>`${column('provider')}`.as('provider_id'),
      sql<string | null>`${column('project')}`.as('project_id'),
      sql<string | null>`${column('key')}`.as('key_id'),
    ])
    .where('id', '>=', bind<string>('first'))
    .where('id', '<', bind<string>('end'))
    .where('organization_id', '=', filter.organizationId);
  if (filter.projectId !== undefined) query = query.where('project_id', '=', filter.projectId);
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId);
  if (filter.memberId !== undefined) query = query.where('member_id', '=', filter.memberId);
  if (groupBy.length > 0) query = query.groupBy(groupBy.map((dimension) => USAGE_COLUMNS[dimension]));
  // One statement, so that a call that is deleted meanwhile is counted once.
  return query.unionAll(keptSums(filter, groupBy)).compile();
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
export function prepareUsageSums(
  { connection }: Database,
  filter: UsageFilter,
  groupBy: readonly UsageDimension[],
): SumUsage {
  const statement = prepare(connection, compileSums(filter, groupBy));
  return (from, to) =>
    statement
      .all({ first: idsFrom('call', from), end: idsFrom('call', to), from, to })
      .filter(({ calls }) => calls > 0) // Without dimensions there is always a row.
      .map((row) => ({
        of: {
          member: row.member_id,
          model: row.model_id,
          provider: row.provider_id,
          project: row.project_id,
          key: row.key_id,
        },
        calls: row.calls,
        errors: row.errors,
        denied: row.denied,
        cacheHits: row.cache_hits,
        estimatedCalls: row.estimated_calls,
        promptTokens: row.prompt_tokens,
        completionTokens: row.completion_tokens,
        reasoningTokens: row.reasoning_tokens,
        cachedTokens: row.cached_tokens,
        cacheWriteTokens: row.cache_write_tokens,
        cost: row.high_pico * HALF + row.low_pico,
      }));
}

/** The owner of a key, also of a deleted one; undefined when the organization has no such key. */
export const ownerOfKey = (db: Database, organizationId: string, id: string): string | undefined =>
  db.get(
    build.selectFrom('keys').select('created_by').where('organization_id', '=', organizationId).where('id', '=', id),
  )?.created_by;

/** Whether the organization has, or had, this project or member. */
export const isOrWasThere = (
  db: Database,
  table: 'projects' | 'members',
  organizationId: string,
  id: string,
): boolean =>
  db.get(build.selectFrom(table).select('id').where('organization_id', '=', organizationId).where('id', '=', id)) !==
  undefined;
