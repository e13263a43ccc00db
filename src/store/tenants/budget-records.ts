import {
  type Budget,
  type BudgetScope,
  capAmount,
  limitChanges,
  type NewLimits,
  type SpendLimits,
} from '../../domain/limits.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, mapPage, type Page, type PageRequest, toPage } from '../db/records.ts';
import { build, exactSum, sumOf } from '../db/sql.ts';

/** Columns of the limits of a key or a budget, and of the amounts spent. */
export const SPEND_COLUMNS = [
  'usageLimit',
  'usage',
  'reserved',
  'periodUsageLimit',
  'periodUsageDurationValue',
  'periodUsageDurationUnit',
  'periodUsageAlignment',
  'currentPeriodUsage',
  'currentPeriodReserved',
  'currentPeriodStartedAt',
] as const;

/** All but the organization: what a budget is in the domain. */
export const BUDGET_COLUMNS = ['scope', 'subjectId', ...SPEND_COLUMNS] as const;

/** Resets the reserve of a new window: amounts that open calls hold back in one window do not count in the next. */
export const withItsReserve = <Changes extends Partial<SpendLimits>>(changes: Changes) =>
  changes.currentPeriodStartedAt === undefined ? changes : { ...changes, currentPeriodReserved: 0n };

/** Subject of a budget. */
export interface BudgetOwner {
  readonly organizationId: string;
  readonly scope: BudgetScope;
  readonly subjectId: string;
}

/** A budget with a row of its own, or that could have one. */
export type OwnedBudget = Budget & { readonly scope: BudgetScope };

const KEY_COLUMN = { member: 'createdBy', project: 'projectId', organization: 'organizationId' } as const;

/**
 * Sums the amounts that all keys of the subject have spent and hold back, deleted ones included. Reads every key of the
 * organization.
 */
function spentByKeys(db: Database, { organizationId, scope, subjectId }: BudgetOwner) {
  const sums = db.get(
    build
      .selectFrom('keys')
      .select([...exactSum('usage', 'usage'), ...exactSum('reserved', 'reserved')])
      .where('organizationId', '=', organizationId)
      .where(KEY_COLUMN[scope], '=', subjectId),
  );
  const ofSubject = build
    .selectFrom('keys')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where(KEY_COLUMN[scope], '=', subjectId);
  // Spending of a key that shares another key's limits is also booked there.
  const twice = db.get(
    build
      .selectFrom('keys')
      .select([...exactSum('usage', 'usage'), ...exactSum('reserved', 'reserved')])
      .where('organizationId', '=', organizationId)
      .where('sharesLimitsOf', 'in', ofSubject),
  );
  if (sums === undefined || twice === undefined) throw new Error('an aggregate has a row');
  return {
    usage: capAmount(sumOf(sums.usageHigh, sums.usageLow) - sumOf(twice.usageHigh, twice.usageLow)),
    reserved: capAmount(sumOf(sums.reservedHigh, sums.reservedLow) - sumOf(twice.reservedHigh, twice.reservedLow)),
  };
}

const NO_LIMITS = {
  usageLimit: null,
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
  currentPeriodUsage: 0n,
  currentPeriodReserved: 0n,
  currentPeriodStartedAt: null,
};

const budgetsOf = (organizationId: string) =>
  build.selectFrom('budgets').select(BUDGET_COLUMNS).where('organizationId', '=', organizationId);

const findBudget = (db: Database, { organizationId, subjectId }: BudgetOwner): OwnedBudget | undefined =>
  db.get(budgetsOf(organizationId).where('subjectId', '=', subjectId));

/** The budget; where none is set, one without limits that says what was spent. */
export function getBudget(db: Database, owner: BudgetOwner): OwnedBudget {
  const { scope, subjectId } = owner;
  return findBudget(db, owner) ?? { scope, subjectId, ...NO_LIMITS, ...spentByKeys(db, owner) };
}

/** The budgets of a key's owner, its project and its organization that have a limit, and the limits that it shares. */
export function budgetsOfKey(
  db: Database,
  key: {
    readonly organizationId: string;
    readonly projectId: string;
    readonly createdBy: string;
    readonly sharesLimitsOf: string | null;
  },
): Budget[] {
  const { organizationId, projectId, createdBy, sharesLimitsOf } = key;
  const budgets: Budget[] = db.all(
    budgetsOf(organizationId).where('subjectId', 'in', [createdBy, projectId, organizationId]),
  );
  if (sharesLimitsOf === null) return budgets;
  const limits = db.all(
    build
      .selectFrom('keys')
      .select(['id as subjectId', ...SPEND_COLUMNS])
      .where('organizationId', '=', organizationId)
      .where('id', '=', sharesLimitsOf),
  );
  return [...budgets, ...limits.map((each) => ({ ...each, scope: 'shared' as const }))];
}

/** The budgets that have a limit, by their ids. */
export function listBudgets(db: Database, organizationId: string, page: PageRequest): Page<OwnedBudget> {
  const { limit, cursor } = page;
  const query = budgetsOf(organizationId)
    .select('subjectId as id')
    .orderBy('subjectId')
    .limit(limit + 1);
  const rest = cursor === undefined ? query : query.where('subjectId', '>', decodeCursor(cursor));
  return mapPage(toPage(db.all(rest), limit), ({ id, ...budget }) => budget);
}

/** The budgets of all organizations that have a limit, by their ids, at most so many: for the operator's metrics. */
export const listAllBudgets = (db: Database, limit: number): Budget[] =>
  db.all(build.selectFrom('budgets').select(BUDGET_COLUMNS).orderBy('subjectId').limit(limit));

/** Removes a budget, if there is one. */
export function deleteBudget(db: Database, organizationId: string, subjectId: string): void {
  db.run(build.deleteFrom('budgets').where('organizationId', '=', organizationId).where('subjectId', '=', subjectId));
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
      db.run(
        build.insertInto('budgets').values({
          subjectId,
          organizationId,
          scope,
          ...spentByKeys(db, owner),
          usageLimit: limits.usageLimit,
          periodUsageLimit: limits.period?.limit ?? null,
          periodUsageDurationValue: limits.period?.value ?? null,
          periodUsageDurationUnit: limits.period?.unit ?? null,
          periodUsageAlignment: limits.period?.alignment ?? null,
        }),
      );
    } else {
      db.run(
        build
          .updateTable('budgets')
          .set(withItsReserve(limitChanges(present, limits)))
          .where('organizationId', '=', organizationId)
          .where('subjectId', '=', subjectId),
      );
    }
  });
}
