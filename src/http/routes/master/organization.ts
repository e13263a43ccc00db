import { changeOrganization, getOrganization } from '../../../admin/tenants/organizations.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter } from './master-route.ts';

/** `/v1/master/organization`: the one that the master key belongs to. */
export function organizationRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  router.get('/v1/master/organization', authenticated, async (ctx) => {
    answer(ctx, await deps.store.read((db) => getOrganization(db, actorOf(ctx))));
  });
  router.patch('/v1/master/organization', authenticated, jsonBody, async (ctx) => {
    answer(ctx, await deps.store.write((db, now) => changeOrganization(db, actorOf(ctx), ctx.state.body, now)));
  });
}
