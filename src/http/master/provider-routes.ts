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
import { answer, pathParameter } from './master-route.ts';

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

/** `/v1/master/custom-models` and `/v1/master/custom-models/{id}`. */
export function customModelHandlers(app: ManagementContext) {
  const { store } = app;

  return {
    listCustomModels: async (ctx) => {
      const request = { ...pageRequest(ctx), customProviderId: queryParameter(ctx, 'customProviderId') };
      answer(ctx, await store.read((db) => listCustomModels(db, actorOf(ctx), request)));
    },
    createCustomModel: async (ctx) => {
      const made = await store.write((db, now) => createCustomModel(db, actorOf(ctx), ctx.state.body, now));
      answer(ctx, made, 201);
    },
    getCustomModel: async (ctx) => {
      answer(ctx, await store.read((db) => getCustomModel(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeCustomModel: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      const changed = await store.write((db, now) => changeCustomModel(db, actorOf(ctx), id, ctx.state.body, now));
      answer(ctx, changed);
    },
    deleteCustomModel: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteCustomModel(db, actorOf(ctx), id, now)));
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
