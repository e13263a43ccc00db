import type { Selectable } from 'kysely';
import { capAmount } from '../../domain/money.ts';
import { type Budget, type BudgetScope, limitChanges, type NewLimits } from '../../domain/spend-limits.ts';
import type { Database } from '../db/database.ts';
import { exactSum, sumOf } from '../db/exact-sum.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { BudgetsTable } from '../db/tables.ts';
import { toSpendColumns, toSpendState } from './spend-columns.ts';

export const toBudget = (row: Selectable<BudgetsTable>): Budget => ({
  scope: row.scope,
  subjectId: row.subject_id,
  ...toSpendState(row),
});

/** Whose budget it is. */
export interface BudgetOwner {
  readonly organizationId: string;
  readonly scope: BudgetScope;
  readonly subjectId: string;
}

const KEY_COLUMN = { member: 'created_by', project: 'project_id', organization: 'organization_id' } as const;

/** What all keys of the subject have spent and hold back, deleted ones too. Reads every key of the organization. */
function spentByKeys(db: Database, { organizationId, scope, subjectId }: BudgetOwner) {
  const sums = db.get(
    build
      .selectFrom('keys')
      .select([...exactSum('usage_pico', 'usage'), ...exactSum('reserved_pico', 'reserved')])
      .where('organization_id', '=', organizationId)
      .where(KEY_COLUMN[scope], '=', subjectId),
  );
  if (sums === undefined) throw new Error('an aggregate has a row');
  return {
    usage: capAmount(sumOf(sums.usageHigh, sums.usageLow)),
    reserved: capAmount(sumOf(sums.reservedHigh, sums.reservedLow)),
  };
}

const NO_LIMITS = {
  usageLimit: null,
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  currentPeriodUsage: 0n,
  currentPeriodReserved: 0n,
  currentPeriodStartedAt: null,
};

const findBudget = (db: Database, { organizationId, subjectId }: BudgetOwner): Budget | undefined => {
  const row = db.get(
    build
      .selectFrom('budgets')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('subject_id', '=', subjectId),
  );
  return row === undefined ? undefined : toBudget(row);
};

/** The budget; where none is set, one without limits that says what was spent. */
export function getBudget(db: Database, owner: BudgetOwner): Budget {
  const { scope, subjectId } = owner;
  return findBudget(db, owner) ?? { scope, subjectId, ...NO_LIMITS, ...spentByKeys(db, owner) };
}

/** The budgets that have a limit, by their ids. */
export function listBudgets(db: Database, organizationId: string, page: PageRequest): Page<Budget> {
  let query = build
    .selectFrom('budgets')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('subject_id')
    .limit(page.limit + 1);
  if (page.cursor !== undefined) query = query.where('subject_id', '>', decodeCursor(page.cursor));
  const { items, nextCursor } = toPage(
    db.all(query).map((row) => ({ id: row.subject_id, budget: toBudget(row) })),
    page.limit,
  );
  return { items: items.map(({ budget }) => budget), nextCursor };
}

/** Removes a budget, if there is one. */
export function deleteBudget(db: Database, organizationId: string, subjectId: string): void {
  db.run(build.deleteFrom('budgets').where('organization_id', '=', organizationId).where('subject_id', '=', subjectId));
}

/**
 * Sets the limits of a budget; without any, there is none. What was spent before counts in the all-time limit, as a key's does.
 * The subject must be the organization's.
 */
export function setBudget(db: Database, owner: BudgetOwner, limits: NewLimits): void {
  const { organizationId, scope, subjectId } = owner;
  db.transaction(() => {
    const present = findBudget(db, owner);
    if (limits.usageLimit === null && limits.period === null) {
      deleteBudget(db, organizationId, subjectId);
    } else if (present === undefined) {
      const spent = spentByKeys(db, owner);
      db.run(
        build.insertInto('budgets').values({
          subject_id: subjectId,
          organization_id: organizationId,
          scope,
          usage_pico: spent.usage,
          reserved_pico: spent.reserved,
          usage_limit_pico: limits.usageLimit,
          period_limit_pico: limits.period?.limit ?? null,
          period_value: limits.period?.value ?? null,
          period_unit: limits.period?.unit ?? null,
        }),
      );
    } else {
      db.run(
        build
          .updateTable('budgets')
          .set(toSpendColumns(limitChanges(present, limits)))
          .where('organization_id', '=', organizationId)
          .where('subject_id', '=', subjectId),
      );
    }
  });
}
