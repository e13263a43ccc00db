import {
  createPlatformKey,
  deletePlatformKey,
  getPlatformKey,
  listPlatformKeys,
} from '../../../admin/keys/platform-keys.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/platform-keys` and `/v1/master/platform-keys/{id}`. */
export function platformKeyHandlers(deps: MasterDeps) {
  const { store, clock, peppers } = deps;

  return {
    listPlatformKeys: async (ctx) => {
      const request = { ...pageRequest(ctx), projectId: queryParameter(ctx, 'projectId') };
      answer(ctx, await store.read((db) => listPlatformKeys(db, actorOf(ctx), request, clock.now())));
    },
    createPlatformKey: async (ctx) => {
      const made = await store.write((db, now) =>
        createPlatformKey(db, actorOf(ctx), ctx.state.body, { now, pepper: peppers[0] }),
      );
      answer(ctx, made, 201);
    },
    getPlatformKey: async (ctx) => {
      answer(ctx, await store.read((db) => getPlatformKey(db, actorOf(ctx), pathParameter(ctx, 'id'), clock.now())));
    },
    deletePlatformKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deletePlatformKey(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
