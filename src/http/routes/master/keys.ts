import {
  changeKey,
  createKey,
  deleteKey,
  getKey,
  LISTED_KINDS,
  type ListedKind,
  listKeys,
} from '../../../admin/keys/keys.ts';
import { invalidRequest } from '../../../domain/errors.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/keys` and `/v1/master/keys/{id}`. */
export function keyHandlers(deps: MasterDeps) {
  const { store, clock, peppers } = deps;

  return {
    listKeys: async (ctx) => {
      const request = { ...pageRequest(ctx), projectId: queryParameter(ctx, 'projectId'), kind: listedKind(ctx) };
      answer(ctx, await store.read((db) => listKeys(db, actorOf(ctx), request, clock.now())));
    },
    createKey: async (ctx) => {
      const made = await store.write((db, now) =>
        createKey(db, actorOf(ctx), ctx.state.body, { now, pepper: peppers[0] }),
      );
      answer(ctx, made, 201);
    },
    getKey: async (ctx) => {
      answer(ctx, await store.read((db) => getKey(db, actorOf(ctx), pathParameter(ctx, 'id'), clock.now())));
    },
    changeKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => changeKey(db, actorOf(ctx), id, ctx.state.body, now)));
    },
    deleteKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteKey(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

function listedKind(ctx: AppContext): ListedKind | undefined {
  const text = queryParameter(ctx, 'kind');
  const kind = LISTED_KINDS.find((known) => known === text);
  if (text === undefined || kind !== undefined) return kind;
  throw invalidRequest(`kind must be one of ${LISTED_KINDS.join(', ')}.`, '/kind');
}
