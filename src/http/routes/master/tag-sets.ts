import { changeTagSet, createTagSet, deleteTagSet, getTagSet, listTagSets } from '../../../admin/providers/tag-sets.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/tag-sets` and `/v1/master/tag-sets/{id}`. */
export function tagSetHandlers({ store, catalog }: MasterDeps) {
  return {
    listTagSets: async (ctx) => {
      const request = pageRequest(ctx);
      answer(ctx, await store.read((db) => listTagSets(db, actorOf(ctx), request)));
    },
    createTagSet: async (ctx) => {
      const made = await store.write((db, now) => createTagSet(db, actorOf(ctx), ctx.state.body, { now, catalog }));
      answer(ctx, made, 201);
    },
    getTagSet: async (ctx) => {
      answer(ctx, await store.read((db) => getTagSet(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeTagSet: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) =>
        changeTagSet(db, actorOf(ctx), id, ctx.state.body, { now, catalog }),
      );
      answer(ctx, changed);
    },
    deleteTagSet: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteTagSet(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
