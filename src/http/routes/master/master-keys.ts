import {
  changeMasterKey,
  createMasterKey,
  deleteMasterKey,
  getMasterKey,
  listMasterKeys,
} from '../../../admin/keys/master-keys.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/master-keys` and `/v1/master/master-keys/{id}`. */
export function masterKeyRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  const { store, peppers } = deps;
  const [pepper] = peppers;

  router.get('/v1/master/master-keys', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await store.read((db) => listMasterKeys(db, actorOf(ctx), page)));
  });
  router.post('/v1/master/master-keys', authenticated, jsonBody, async (ctx) => {
    const made = await store.write((db, now) => createMasterKey(db, actorOf(ctx), ctx.state.body, { now, pepper }));
    answer(ctx, made, 201);
  });
  router.get('/v1/master/master-keys/:id', authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getMasterKey(db, actorOf(ctx), pathParameter(ctx, 'id'))));
  });
  router.patch('/v1/master/master-keys/:id', authenticated, jsonBody, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => changeMasterKey(db, actorOf(ctx), id, ctx.state.body, now)));
  });
  router.delete('/v1/master/master-keys/:id', authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => deleteMasterKey(db, actorOf(ctx), id, now)));
  });
}
