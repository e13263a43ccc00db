import { sql } from 'kysely';
import { idsFrom } from '../domain/id.ts';
import type { Database } from './database.ts';
import { exactSum, sumOf } from './exact-sum.ts';
import { bind, build, prepare } from './sql.ts';

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

/** Exact up to 2^53, as far as a JSON number goes; unlike `sum` it never fails. */
const total = (column: string) => sql<number>`total(${sql.ref(column)})`;

/** The sums over what the query selects, beside its own columns. */
const sums = [
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
  ...exactSum('cost', 'cost_pico'),
];

function compileSums(filter: UsageFilter, groupBy: readonly UsageDimension[]) {
  const column = (dimension: UsageDimension) =>
    groupBy.includes(dimension) ? sql.ref(USAGE_COLUMNS[dimension]) : sql.raw('NULL');
  let query = build
    .selectFrom('calls')
    .select(sums)
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
  return query.compile();
}

/** Sums of the calls that were made from `from` to before `to` (epoch ms), one for each combination of dimensions that has any. */
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
      .all({ first: idsFrom('call', from), end: idsFrom('call', to) })
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
        cost: sumOf(row.cost_high_pico, row.cost_low_pico),
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
