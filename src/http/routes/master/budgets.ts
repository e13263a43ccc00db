import { type BudgetOwner, changeBudget, getBudget, listBudgets } from '../../../admin/tenants/budgets.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/budgets`, and `…/budget` of a member (membership id or e-mail), a project and the organization. */
export function budgetRoutes(master: MasterRouter): void {
  const { router, deps, authenticated } = master;
  router.get('/v1/master/budgets', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await deps.store.read((db) => listBudgets(db, actorOf(ctx), page, deps.clock.now())));
  });
  budgetOf(master, '/v1/master/members/:member/budget', (ctx) => ({
    kind: 'member',
    member: pathParameter(ctx, 'member'),
  }));
  budgetOf(master, '/v1/master/projects/:id/budget', (ctx) => ({ kind: 'project', project: pathParameter(ctx, 'id') }));
  budgetOf(master, '/v1/master/organization/budget', () => ({ kind: 'organization' }));
}

function budgetOf(master: MasterRouter, path: string, ownerOf: (ctx: AppContext) => BudgetOwner): void {
  const { router, deps, authenticated, jsonBody } = master;
  const { store, clock } = deps;

  router.get(path, authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getBudget(db, actorOf(ctx), ownerOf(ctx), clock.now())));
  });
  router.patch(path, authenticated, jsonBody, async (ctx) => {
    const { body } = ctx.state;
    answer(ctx, await store.write((db, now) => changeBudget(db, actorOf(ctx), ownerOf(ctx), body, now)));
  });
}
