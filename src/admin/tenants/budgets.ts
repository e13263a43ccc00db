import { checkShape } from '../../domain/check-shape.ts';
import { isSpent, runningPeriod, usdNumber } from '../../domain/limits.ts';
import type { BudgetAnswer, BudgetList, BudgetRecord } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/tenants/budget-records.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { findNames, getOrganization, getProject } from '../../store/tenants/tenants.ts';
import type { WatchedBudget } from '../../telemetry/metrics.ts';
import {
  type Actor,
  checkIsOwner,
  checkManagesOrganization,
  checkManagesRole,
  recordChange,
} from '../audit/audit-trail.ts';
import { LIMIT_EXPLANATIONS, newLimits, viewLimits } from '../keys/key-limits.ts';

/** The owner of a budget: a member by membership id or e-mail, a project by its id, or the actor's organization. */
export type BudgetOwner =
  | { readonly kind: 'member'; readonly member: string }
  | { readonly kind: 'project'; readonly project: string }
  | { readonly kind: 'organization' };

/** A page of the budgets that have a limit, by their ids; 403 for developers. `now` in epoch ms. */
export function listBudgets(db: Database, actor: Actor, page: PageRequest, now: number): BudgetList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listBudgets(db, actor.organizationId, page);
  const names = findNames(
    db,
    actor.organizationId,
    items.map(({ subjectId }) => subjectId),
  );
  return {
    budgets: items.map((budget) => view(budget, names.get(budget.subjectId) ?? budget.subjectId, now)),
    nextCursor,
  };
}

/** The limit and the spending of the owner's keys together; 404 when there is no such owner, 403 for developers. */
export function getBudget(db: Database, actor: Actor, owner: BudgetOwner, now: number): BudgetAnswer {
  checkManagesOrganization(actor);
  const { name, ...found } = ownerOf(db, actor, owner);
  return { budget: view(store.getBudget(db, found), name, now) };
}

/**
 * Changes the limits of a budget, from the next call on. Shape 400, no such owner 404; 403 for developers, for admins where it is
 * an owner's, and for all but owners where it is the organization's.
 * @param body as `BudgetPatch`, unchecked. @param now epoch ms
 */
export function changeBudget(db: Database, actor: Actor, owner: BudgetOwner, body: unknown, now: number): BudgetAnswer {
  const patch = checkShape(validator('BudgetPatch'), body, LIMIT_EXPLANATIONS);
  return db.transaction(() => {
    checkChanges(db, actor, owner);
    const { name, ...found } = ownerOf(db, actor, owner);
    const present = store.getBudget(db, found);
    store.setBudget(db, found, newLimits(patch, present));
    const budget = view(store.getBudget(db, found), name, now);
    recordChange(db, actor, 'budget', 'update', { before: view(present, name, now), after: budget }, now);
    return { budget };
  });
}

/** Budgets that metrics have labels for. */
const MAX_WATCHED = 500;

/** The limits of budgets as metrics show them, at `now` in epoch ms. */
export const listWatchedBudgets = (db: Database, now: number): WatchedBudget[] =>
  store.listAllBudgets(db, MAX_WATCHED).flatMap((budget) => {
    const { scope, subjectId: id, usageLimit, usage, periodUsageLimit } = budget;
    const limits = [
      { limit: 'all_time', most: usageLimit, spent: usage },
      { limit: 'recurring', most: periodUsageLimit, spent: runningPeriod(budget, now)?.usage ?? 0n },
    ] as const;
    return limits.flatMap(({ limit, most, spent }) =>
      most === null ? [] : { labels: { scope, id, limit }, limitUsd: usdNumber(most), spentUsd: usdNumber(spent) },
    );
  });

function checkChanges(db: Database, actor: Actor, owner: BudgetOwner): void {
  checkManagesOrganization(actor);
  if (owner.kind === 'organization') checkIsOwner(actor);
  if (owner.kind === 'member') checkManagesRole(actor, getMember(db, actor.organizationId, owner.member).role);
}

function ownerOf(
  db: Database,
  { organizationId }: Actor,
  owner: BudgetOwner,
): store.BudgetOwner & { readonly name: string } {
  switch (owner.kind) {
    case 'member': {
      const { id, email } = getMember(db, organizationId, owner.member);
      return { organizationId, scope: 'member', subjectId: id, name: email };
    }
    case 'project': {
      const { id, name } = getProject(db, organizationId, owner.project);
      return { organizationId, scope: 'project', subjectId: id, name };
    }
    case 'organization': {
      const { name } = getOrganization(db, organizationId);
      return { organizationId, scope: 'organization', subjectId: organizationId, name };
    }
  }
}

const view = (budget: store.OwnedBudget, name: string, now: number): BudgetRecord => ({
  id: budget.subjectId,
  scope: budget.scope,
  name,
  state: isSpent(budget, now) ? 'limit_reached' : 'active',
  ...viewLimits(budget, now),
});
