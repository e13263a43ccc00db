import {
  changeMasterKey,
  createMasterKey,
  deleteMasterKey,
  getMasterKey,
  listMasterKeys,
} from '../../../admin/keys/master-keys.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/master-keys` and `/v1/master/master-keys/{id}`. */
export function masterKeyHandlers(deps: MasterDeps) {
  const { store, peppers } = deps;

  return {
    listMasterKeys: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listMasterKeys(db, actorOf(ctx), page)));
    },
    createMasterKey: async (ctx) => {
      const made = await store.write((db, now) =>
        createMasterKey(db, actorOf(ctx), ctx.state.body, { now, pepper: peppers[0] }),
      );
      answer(ctx, made, 201);
    },
    getMasterKey: async (ctx) => {
      answer(ctx, await store.read((db) => getMasterKey(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeMasterKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => changeMasterKey(db, actorOf(ctx), id, ctx.state.body, now)));
    },
    deleteMasterKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteMasterKey(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
