import { type BudgetOwner, changeBudget, getBudget, listBudgets } from '../../../admin/tenants/budgets.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { Handlers } from '../../register.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/budgets`, and `…/budget` of a member (membership id or e-mail), a project and the organization. */
export const budgetHandlers = (deps: MasterDeps): Handlers => ({
  listBudgets: async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await deps.store.read((db) => listBudgets(db, actorOf(ctx), page, deps.clock.now())));
  },
  ...budgetOf(deps, 'MemberBudget', (ctx) => ({ kind: 'member', member: pathParameter(ctx, 'member') })),
  ...budgetOf(deps, 'ProjectBudget', (ctx) => ({ kind: 'project', project: pathParameter(ctx, 'id') })),
  ...budgetOf(deps, 'OrganizationBudget', () => ({ kind: 'organization' })),
});

const budgetOf = ({ store, clock }: MasterDeps, name: string, ownerOf: (ctx: AppContext) => BudgetOwner): Handlers => ({
  [`get${name}`]: async (ctx) => {
    answer(ctx, await store.read((db) => getBudget(db, actorOf(ctx), ownerOf(ctx), clock.now())));
  },
  [`change${name}`]: async (ctx) => {
    const { body } = ctx.state;
    answer(ctx, await store.write((db, now) => changeBudget(db, actorOf(ctx), ownerOf(ctx), body, now)));
  },
});
