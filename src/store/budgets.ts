import type { Selectable } from 'kysely';
import { capAmount } from '../domain/money.ts';
import { type Budget, type BudgetScope, limitChanges, type NewLimits } from '../domain/spend-limits.ts';
import type { Database } from './database.ts';
import { exactSum, sumOf } from './exact-sum.ts';
import { toSpendColumns, toSpendState } from './spend-columns.ts';
import { build } from './sql.ts';
import type { BudgetsTable } from './tables.ts';

export const toBudget = (row: Selectable<BudgetsTable>): Budget => ({
  scope: row.scope,
  subjectId: row.subject_id,
  ...toSpendState(row),
});

/** The budgets that these members, projects and organizations have, by their ids. */
export function findBudgets(
  db: Database,
  organizationId: string,
  subjectIds: readonly string[],
): ReadonlyMap<string, Budget> {
  if (subjectIds.length === 0) return new Map();
  const rows = db.all(
    build
      .selectFrom('budgets')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('subject_id', 'in', [...subjectIds]),
  );
  return new Map(rows.map((row) => [row.subject_id, toBudget(row)]));
}

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
      .select([...exactSum('usage', 'usage_pico'), ...exactSum('reserved', 'reserved_pico')])
      .where('organization_id', '=', organizationId)
      .where(KEY_COLUMN[scope], '=', subjectId),
  );
  if (sums === undefined) throw new Error('an aggregate has a row');
  return {
    usage_pico: capAmount(sumOf(sums.usage_high_pico, sums.usage_low_pico)),
    reserved_pico: capAmount(sumOf(sums.reserved_high_pico, sums.reserved_low_pico)),
  };
}

/**
 * Sets the limits of a budget; without any, there is none. What was spent before counts in the all-time limit, as a key's does.
 * The subject must be the organization's.
 */
export function setBudget(db: Database, owner: BudgetOwner, limits: NewLimits): void {
  const { organizationId, scope, subjectId } = owner;
  db.transaction(() => {
    const present = findBudgets(db, organizationId, [subjectId]).get(subjectId);
    if (limits.usageLimit === null && limits.period === null) {
      db.run(
        build.deleteFrom('budgets').where('organization_id', '=', organizationId).where('subject_id', '=', subjectId),
      );
    } else if (present === undefined) {
      db.run(
        build.insertInto('budgets').values({
          subject_id: subjectId,
          organization_id: organizationId,
          scope,
          ...spentByKeys(db, owner),
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
