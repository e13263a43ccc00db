import {
  changeKey,
  createKey,
  deleteKey,
  getKey,
  LISTED_KINDS,
  type ListedKind,
  listKeys,
} from '../../admin/keys/keys.ts';
import {
  changeMasterKey,
  createMasterKey,
  deleteMasterKey,
  getMasterKey,
  listMasterKeys,
} from '../../admin/keys/master-keys.ts';
import {
  createPlatformKey,
  deletePlatformKey,
  getPlatformKey,
  listPlatformKeys,
} from '../../admin/keys/platform-keys.ts';
import { invalidRequest } from '../../domain/errors.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { pageRequest, queryParameter } from '../query.ts';
import type { Handlers } from '../routes.ts';
import type { RequestContext } from '../state.ts';
import { answer, answerChange, pathParameter } from './master-route.ts';

/** `/v1/master/keys` and `/v1/master/keys/{id}`. */
export function keyHandlers(app: ManagementContext) {
  const { store, clock, peppers } = app;

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
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      // Only a policy from elsewhere asks for the tags of a key.
      const isUnknown = 'tags' in Object(body) && app.policy.inForce().status.source !== undefined;
      await answerChange(app, ctx, (db, now) => changeKey(db, actor, id, body, now), { isUnknown });
    },
    deleteKey: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteKey(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

function listedKind(ctx: RequestContext): ListedKind | undefined {
  const text = queryParameter(ctx, 'kind');
  const kind = LISTED_KINDS.find((known) => known === text);
  if (text === undefined || kind !== undefined) return kind;
  throw invalidRequest(`kind must be one of ${LISTED_KINDS.join(', ')}.`, '/kind');
}

/** `/v1/master/platform-keys` and `/v1/master/platform-keys/{id}`. */
export function platformKeyHandlers(app: ManagementContext) {
  const { store, clock, peppers } = app;

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

/** `/v1/master/master-keys` and `/v1/master/master-keys/{id}`. */
export function masterKeyHandlers(app: ManagementContext) {
  const { store, peppers } = app;

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
