import { type BudgetOwner, changeBudget, getBudget, listBudgets } from '../../../admin/tenants/budgets.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import type { AppContext, AppMiddleware } from '../../state.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/budgets`, and `…/budget` of a member (membership id or e-mail), a project and the organization. */
export function budgetHandlers(deps: MasterDeps) {
  const ofMember = budgetOf(deps, (ctx) => ({ kind: 'member', member: pathParameter(ctx, 'member') }));
  const ofProject = budgetOf(deps, (ctx) => ({ kind: 'project', project: pathParameter(ctx, 'id') }));
  const ofOrganization = budgetOf(deps, () => ({ kind: 'organization' }));
  return {
    listBudgets: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await deps.store.read((db) => listBudgets(db, actorOf(ctx), page, deps.clock.now())));
    },
    getMemberBudget: ofMember.get,
    changeMemberBudget: ofMember.change,
    getProjectBudget: ofProject.get,
    changeProjectBudget: ofProject.change,
    getOrganizationBudget: ofOrganization.get,
    changeOrganizationBudget: ofOrganization.change,
  } satisfies Partial<Handlers<ManagementId>>;
}

const budgetOf = ({ store, clock }: MasterDeps, ownerOf: (ctx: AppContext) => BudgetOwner) =>
  ({
    get: async (ctx) => {
      answer(ctx, await store.read((db) => getBudget(db, actorOf(ctx), ownerOf(ctx), clock.now())));
    },
    change: async (ctx) => {
      const { body } = ctx.state;
      answer(ctx, await store.write((db, now) => changeBudget(db, actorOf(ctx), ownerOf(ctx), body, now)));
    },
  }) satisfies Record<string, AppMiddleware>;
