import { changeAlias, createAlias, deleteAlias, getAlias, listAliases } from '../../../admin/providers/aliases.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/aliases` and `/v1/master/aliases/{id}`. */
export function aliasHandlers({ store, catalog }: MasterDeps) {
  return {
    listAliases: async (ctx) => {
      const request = { ...pageRequest(ctx), projectId: queryParameter(ctx, 'projectId') };
      answer(ctx, await store.read((db) => listAliases(db, actorOf(ctx), request)));
    },
    createAlias: async (ctx) => {
      const made = await store.write((db, now) => createAlias(db, actorOf(ctx), ctx.state.body, { now, catalog }));
      answer(ctx, made, 201);
    },
    getAlias: async (ctx) => {
      answer(ctx, await store.read((db) => getAlias(db, actorOf(ctx), pathParameter(ctx, 'id'), { catalog })));
    },
    changeAlias: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) =>
        changeAlias(db, actorOf(ctx), id, ctx.state.body, { now, catalog }),
      );
      answer(ctx, changed);
    },
    deleteAlias: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteAlias(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
