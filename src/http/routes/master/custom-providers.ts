import {
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
  getCustomProvider,
  listCustomProviders,
} from '../../../admin/providers/custom-providers.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/custom-providers` and `/v1/master/custom-providers/{id}`. */
export function customProviderHandlers(deps: MasterDeps) {
  const { store, catalog, allowPrivateUpstreams } = deps;
  const world = { catalog, allowPrivateUpstreams };

  return {
    listCustomProviders: async (ctx) => {
      const request = pageRequest(ctx);
      answer(ctx, await store.read((db) => listCustomProviders(db, actorOf(ctx), request)));
    },
    createCustomProvider: async (ctx) => {
      const made = await store.write((db, now) =>
        createCustomProvider(db, actorOf(ctx), ctx.state.body, { now, ...world }),
      );
      answer(ctx, made, 201);
    },
    getCustomProvider: async (ctx) => {
      answer(ctx, await store.read((db) => getCustomProvider(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeCustomProvider: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) =>
        changeCustomProvider(db, actorOf(ctx), id, ctx.state.body, { now, ...world }),
      );
      answer(ctx, changed);
    },
    deleteCustomProvider: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteCustomProvider(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
