import {
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
  getCustomProvider,
  listCustomProviders,
} from '../../../admin/providers/custom-providers.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/custom-providers` and `/v1/master/custom-providers/{id}`. */
export function customProviderRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  const { store, catalog, allowPrivateUpstreams } = deps;
  const world = { catalog, allowPrivateUpstreams };

  router.get('/v1/master/custom-providers', authenticated, async (ctx) => {
    const request = pageRequest(ctx);
    answer(ctx, await store.read((db) => listCustomProviders(db, actorOf(ctx), request)));
  });
  router.post('/v1/master/custom-providers', authenticated, jsonBody, async (ctx) => {
    const made = await store.write((db, now) =>
      createCustomProvider(db, actorOf(ctx), ctx.state.body, { now, ...world }),
    );
    answer(ctx, made, 201);
  });
  router.get('/v1/master/custom-providers/:id', authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getCustomProvider(db, actorOf(ctx), pathParameter(ctx, 'id'))));
  });
  router.patch('/v1/master/custom-providers/:id', authenticated, jsonBody, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    const changed = await store.write((db, now) =>
      changeCustomProvider(db, actorOf(ctx), id, ctx.state.body, { now, ...world }),
    );
    answer(ctx, changed);
  });
  router.delete('/v1/master/custom-providers/:id', authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'id');
    answer(ctx, await store.write((db, now) => deleteCustomProvider(db, actorOf(ctx), id, now)));
  });
}
