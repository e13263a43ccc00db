import { listMembers } from '../../../admin/members.ts';
import { listProjects } from '../../../admin/projects.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/projects` and `/v1/master/members`: whom and what keys and rules can be for. */
export function directoryRoutes({ router, deps, authenticated }: MasterRouter): void {
  router.get('/v1/master/projects', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await deps.store.read((db) => listProjects(db, actorOf(ctx), page)));
  });
  router.get('/v1/master/members', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await deps.store.read((db) => listMembers(db, actorOf(ctx), page)));
  });
}
