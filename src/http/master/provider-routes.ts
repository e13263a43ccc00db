import { changeAlias, createAlias, deleteAlias, getAlias, listAliases } from '../../admin/providers/aliases.ts';
import {
  changeCustomModel,
  createCustomModel,
  deleteCustomModel,
  getCustomModel,
  listCustomModels,
} from '../../admin/providers/custom-models.ts';
import {
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
  getCustomProvider,
  listCustomProviders,
} from '../../admin/providers/custom-providers.ts';
import {
  changeProviderKey,
  createProviderKey,
  deleteProviderKey,
  getProviderKey,
  listProviderKeys,
} from '../../admin/providers/provider-keys.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { pageRequest, queryParameter } from '../query.ts';
import type { Handlers } from '../routes.ts';
import { answer, answerChange, pathParameter } from './master-route.ts';

/** `/v1/master/provider-keys` and `/v1/master/provider-keys/{id}`. */
export function providerKeyHandlers(app: ManagementContext) {
  const { store, catalog, encryptionKeys, allowPrivateUpstreams } = app;
  const world = () => ({ catalog, encryptionKey: encryptionKeys[0], allowPrivateUpstreams });

  return {
    listProviderKeys: async (ctx) => {
      const request = { ...pageRequest(ctx), provider: queryParameter(ctx, 'provider') };
      answer(ctx, await store.read((db) => listProviderKeys(db, actorOf(ctx), request)));
    },
    createProviderKey: async (ctx) => {
      const [actor, { body }] = [actorOf(ctx), ctx.state];
      await answerChange(app, ctx, (db, now) => createProviderKey(db, actor, body, { now, ...world() }), {
        status: 201,
      });
    },
    getProviderKey: async (ctx) => {
      answer(ctx, await store.read((db) => getProviderKey(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeProviderKey: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      await answerChange(app, ctx, (db, now) => changeProviderKey(db, actor, id, body, { now, ...world() }));
    },
    deleteProviderKey: async (ctx) => {
      const [actor, id] = [actorOf(ctx), pathParameter(ctx, 'id')];
      await answerChange(app, ctx, (db, now) => deleteProviderKey(db, actor, id, now));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/custom-providers` and `/v1/master/custom-providers/{id}`. */
export function customProviderHandlers(app: ManagementContext) {
  const { store, catalog, allowPrivateUpstreams } = app;
  const world = { catalog, allowPrivateUpstreams };

  return {
    listCustomProviders: async (ctx) => {
      const request = pageRequest(ctx);
      answer(ctx, await store.read((db) => listCustomProviders(db, actorOf(ctx), request)));
    },
    createCustomProvider: async (ctx) => {
      const [actor, { body }] = [actorOf(ctx), ctx.state];
      await answerChange(app, ctx, (db, now) => createCustomProvider(db, actor, body, { now, ...world }), {
        status: 201,
      });
    },
    getCustomProvider: async (ctx) => {
      answer(ctx, await store.read((db) => getCustomProvider(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeCustomProvider: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      await answerChange(app, ctx, (db, now) => changeCustomProvider(db, actor, id, body, { now, ...world }));
    },
    deleteCustomProvider: async (ctx) => {
      const [actor, id] = [actorOf(ctx), pathParameter(ctx, 'id')];
      await answerChange(app, ctx, (db, now) => deleteCustomProvider(db, actor, id, now));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/custom-models` and `/v1/master/custom-models/{id}`. */
export function customModelHandlers(app: ManagementContext) {
  const { store } = app;

  return {
    listCustomModels: async (ctx) => {
      const request = { ...pageRequest(ctx), customProviderId: queryParameter(ctx, 'customProviderId') };
      answer(ctx, await store.read((db) => listCustomModels(db, actorOf(ctx), request)));
    },
    createCustomModel: async (ctx) => {
      const [actor, { body }] = [actorOf(ctx), ctx.state];
      await answerChange(app, ctx, (db, now) => createCustomModel(db, actor, body, now), { status: 201 });
    },
    getCustomModel: async (ctx) => {
      answer(ctx, await store.read((db) => getCustomModel(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeCustomModel: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      await answerChange(app, ctx, (db, now) => changeCustomModel(db, actor, id, body, now));
    },
    deleteCustomModel: async (ctx) => {
      const [actor, id] = [actorOf(ctx), pathParameter(ctx, 'id')];
      await answerChange(app, ctx, (db, now) => deleteCustomModel(db, actor, id, now));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/aliases` and `/v1/master/aliases/{id}`. */
export function aliasHandlers({ store, catalog }: ManagementContext) {
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
