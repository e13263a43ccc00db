import {
  changeProject,
  createProject,
  deleteProject,
  getProject,
  listProjects,
} from '../../../admin/tenants/projects.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/projects` and `/v1/master/projects/{id}`. */
export function projectRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  const { store } = deps;

  router.get('/v1/master/projects', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await store.read((db) => listProjects(db, actorOf(ctx), page)));
  });
  router.post('/v1/master/projects', authenticated, jsonBody, async (ctx) => {
    answer(ctx, await store.write((db, now) => createProject(db, actorOf(ctx), ctx.state.body, now)), 201);
  });
  router.get('/v1/master/projects/:id', authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getProject(db, actorOf(ctx), pathParameter(ctx, 'id'))));
  });
  router.patch('/v1/master/projects/:id', authenticated, jsonBody, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => changeProject(db, actorOf(ctx), id, ctx.state.body, now)));
  });
  router.delete('/v1/master/projects/:id', authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => deleteProject(db, actorOf(ctx), id, now)));
  });
}
