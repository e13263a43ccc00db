import {
  changeProject,
  createProject,
  deleteProject,
  getProject,
  listProjects,
} from '../../../admin/tenants/projects.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/projects` and `/v1/master/projects/{id}`. */
export function projectHandlers(deps: MasterDeps) {
  const { store } = deps;

  return {
    listProjects: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listProjects(db, actorOf(ctx), page)));
    },
    createProject: async (ctx) => {
      answer(ctx, await store.write((db, now) => createProject(db, actorOf(ctx), ctx.state.body, now)), 201);
    },
    getProject: async (ctx) => {
      answer(ctx, await store.read((db) => getProject(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeProject: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => changeProject(db, actorOf(ctx), id, ctx.state.body, now)));
    },
    deleteProject: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteProject(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
