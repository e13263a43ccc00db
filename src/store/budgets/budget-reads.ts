import { sql } from 'kysely';
import { type Budget, isCapped } from '../../domain/spend-limits.ts';
import type { Database } from '../db/database.ts';
import { type Freshness, FreshReads } from '../db/freshness.ts';
import { build, Place, prepareHot } from '../db/sql.ts';
import { BUDGET_COLUMNS, SPEND_COLUMNS } from './budgets.ts';

/** A key, and whose budgets bind it. */
interface BudgetedKey {
  readonly keyId: string;
  readonly memberId: string;
  readonly projectId: string;
  readonly organizationId: string;
}

/** What the hot path reads of budgets. */
export interface BudgetReads {
  /**
   * The budgets that bind the key as they are now, in a fixed order; last the limits that it shares.
   * @param sharesLimitsOf the key whose limits those are
   */
  of(key: BudgetedKey, sharesLimitsOf: string | null): readonly Budget[];
  /** False when it is known, without a query, that none binds the key. */
  mayBind(keyId: string): boolean;
}

const NONE: readonly Budget[] = [];

/** Most keys that are remembered. */
const MAX_KEYS = 10_000;

const memberId = new Place<string>();
const projectId = new Place<string>();
const organizationId = new Place<string>();
const sharedId = new Place<string>();

const selectBudgets = build
  .selectFrom('budgets')
  .select(BUDGET_COLUMNS)
  // As subqueries: with bare parameters SQLite plans the statement again for every value.
  .where('subjectId', 'in', [
    sql<string>`(SELECT ${memberId})`,
    sql<string>`(SELECT ${projectId})`,
    sql<string>`(SELECT ${organizationId})`,
  ])
  .where('organizationId', '=', sql<string>`(SELECT ${organizationId})`)
  .orderBy('subjectId');

const selectShared = build
  .selectFrom('keys')
  .select(['id as subjectId', ...SPEND_COLUMNS])
  .where('id', '=', sharedId)
  .where('organizationId', '=', organizationId);

/** Remembers which keys no budget binds for as long as nothing changes, so that they cost no query. */
export function createBudgetReads({ connection }: Database, freshness: Freshness): BudgetReads {
  const statement = prepareHot(connection, [memberId, projectId, organizationId], selectBudgets.compile());
  const shared = prepareHot(connection, [sharedId, organizationId], selectShared.compile());
  const unbound = new FreshReads<true>(freshness, MAX_KEYS);
  const mayBind = (keyId: string): boolean => unbound.get(keyId) === undefined;
  return {
    mayBind,
    of(key, sharesLimitsOf) {
      const { keyId } = key;
      if (!mayBind(keyId)) return NONE;
      const epoch = freshness.lastEpoch();
      const budgets: Budget[] = statement.all(key.memberId, key.projectId, key.organizationId);
      if (sharesLimitsOf !== null) {
        const limits = shared.get(sharesLimitsOf, key.organizationId);
        if (limits !== undefined && isCapped(limits)) budgets.push({ ...limits, scope: 'shared' });
      }
      if (budgets.length > 0) return budgets;
      unbound.set(keyId, true, epoch);
      return NONE;
    },
  };
}
