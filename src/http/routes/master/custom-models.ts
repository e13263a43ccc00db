import {
  changeCustomModel,
  createCustomModel,
  deleteCustomModel,
  getCustomModel,
  listCustomModels,
} from '../../../admin/providers/custom-models.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/custom-models` and `/v1/master/custom-models/{id}`. */
export function customModelHandlers(deps: MasterDeps) {
  const { store } = deps;

  return {
    listCustomModels: async (ctx) => {
      const request = { ...pageRequest(ctx), customProviderId: queryParameter(ctx, 'customProviderId') };
      answer(ctx, await store.read((db) => listCustomModels(db, actorOf(ctx), request)));
    },
    createCustomModel: async (ctx) => {
      const made = await store.write((db, now) => createCustomModel(db, actorOf(ctx), ctx.state.body, now));
      answer(ctx, made, 201);
    },
    getCustomModel: async (ctx) => {
      answer(ctx, await store.read((db) => getCustomModel(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeCustomModel: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) => changeCustomModel(db, actorOf(ctx), id, ctx.state.body, now));
      answer(ctx, changed);
    },
    deleteCustomModel: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteCustomModel(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
