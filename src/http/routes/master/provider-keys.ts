import {
  changeProviderKey,
  createProviderKey,
  deleteProviderKey,
  getProviderKey,
  listProviderKeys,
} from '../../../admin/providers/provider-keys.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/provider-keys` and `/v1/master/provider-keys/{id}`. */
export function providerKeyHandlers(deps: MasterDeps) {
  const { store, catalog, encryptionKeys, allowPrivateUpstreams } = deps;
  const world = () => ({ catalog, encryptionKey: encryptionKeys[0], allowPrivateUpstreams });

  return {
    listProviderKeys: async (ctx) => {
      const request = { ...pageRequest(ctx), provider: queryParameter(ctx, 'provider') };
      answer(ctx, await store.read((db) => listProviderKeys(db, actorOf(ctx), request)));
    },
    createProviderKey: async (ctx) => {
      const made = await store.write((db, now) =>
        createProviderKey(db, actorOf(ctx), ctx.state.body, { now, ...world() }),
      );
      answer(ctx, made, 201);
    },
    getProviderKey: async (ctx) => {
      answer(ctx, await store.read((db) => getProviderKey(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeProviderKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) =>
        changeProviderKey(db, actorOf(ctx), id, ctx.state.body, { now, ...world() }),
      );
      answer(ctx, changed);
    },
    deleteProviderKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteProviderKey(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
