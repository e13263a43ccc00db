import {
  changeCustomModel,
  createCustomModel,
  deleteCustomModel,
  getCustomModel,
  listCustomModels,
} from '../../../admin/providers/custom-models.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/custom-models` and `/v1/master/custom-models/{id}`. */
export function customModelRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  const { store } = deps;

  router.get('/v1/master/custom-models', authenticated, async (ctx) => {
    const request = { ...pageRequest(ctx), customProviderId: queryParameter(ctx, 'customProviderId') };
    answer(ctx, await store.read((db) => listCustomModels(db, actorOf(ctx), request)));
  });
  router.post('/v1/master/custom-models', authenticated, jsonBody, async (ctx) => {
    const made = await store.write((db, now) => createCustomModel(db, actorOf(ctx), ctx.state.body, now));
    answer(ctx, made, 201);
  });
  router.get('/v1/master/custom-models/:id', authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getCustomModel(db, actorOf(ctx), pathParameter(ctx, 'id'))));
  });
  router.patch('/v1/master/custom-models/:id', authenticated, jsonBody, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    const changed = await store.write((db, now) => changeCustomModel(db, actorOf(ctx), id, ctx.state.body, now));
    answer(ctx, changed);
  });
  router.delete('/v1/master/custom-models/:id', authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => deleteCustomModel(db, actorOf(ctx), id, now)));
  });
}
