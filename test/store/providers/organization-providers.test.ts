import { describe, expect, it, onTestFinished } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { insertAlias, insertTagSet } from '../../../src/store/providers/custom-names.ts';
import {
  type CustomModelRecord,
  deleteCustomProvider,
  insertCustomModel,
  insertCustomProvider,
  type NewCustomModel,
} from '../../../src/store/providers/custom-provider-records.ts';
import {
  deleteProviderKey,
  insertProviderKey,
  keysOfProvider,
  type NewProviderKey,
  placeProviderKey,
  updateProviderKey,
} from '../../../src/store/providers/provider-key-records.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { updateOrganization } from '../../../src/store/tenants/tenants.ts';
import { addTenant, storeWithTenant } from '../fixture.ts';

const newProvider = (name: string) => ({
  id: newId('prov'),
  name,
  wire: 'openai' as const,
  baseUrl: 'https://models.example/v1',
  keyless: false,
  fields: [],
});

const newModel = (customProviderId: string, changes: Partial<NewCustomModel> = {}): NewCustomModel => ({
  id: newId('model'),
  customProviderId,
  model: 'org/model-7b',
  displayName: 'Model 7B',
  prices: { prompt: 1n, completion: 9_000_000_000_000_000_000n },
  contextLength: 8192,
  maxOutput: null,
  streaming: true,
  vision: false,
  tools: true,
  parallelToolCalls: false,
  reasoning: false,
  jsonOutput: true,
  structuredOutputs: false,
  inputModalities: ['text'],
  outputModalities: ['text'],
  supportedParameters: null,
  status: 'active',
  ...changes,
});

const newProviderKey = (provider: string, changes: Partial<NewProviderKey> = {}): NewProviderKey => ({
  id: newId('pkey'),
  label: 'Ours',
  provider,
  projectId: null,
  baseUrl: null,
  secret: { keyId: 'abc', ciphertext: 'AAAA' },
  mask: '…wxyz',
  status: 'active',
  ...changes,
});

/** A custom provider with one model and one key. */
const addProvider = (store: Store, organizationId: string, name: string) =>
  store.write((db, now) => {
    const provider = insertCustomProvider(db, organizationId, newProvider(name), now);
    const model = insertCustomModel(db, organizationId, newModel(provider.id), now);
    const key = insertProviderKey(db, organizationId, newProviderKey(`custom:${name}`), now);
    return { provider, model, key };
  });

const attributesOf = (model: CustomModelRecord) => ({
  streaming: model.streaming,
  vision: model.vision,
  tools: model.tools,
  parallelToolCalls: model.parallelToolCalls,
  reasoning: model.reasoning,
  jsonOutput: model.jsonOutput,
  structuredOutputs: model.structuredOutputs,
  inputModalities: model.inputModalities,
  outputModalities: model.outputModalities,
});

describe('the own providers of an organization', () => {
  it('is its custom providers, the mappings of its active models, its active keys, its tags and its aliases', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId } = tenant;
    const { provider, model, key } = await addProvider(store, organizationId, 'acme');
    await store.write((db, now) => {
      insertCustomModel(db, organizationId, newModel(provider.id, { model: 'resting', status: 'inactive' }), now);
      insertProviderKey(db, organizationId, newProviderKey('openai', { status: 'inactive' }), now);
    });
    const tagSet = await store.write((db, now) =>
      insertTagSet(db, organizationId, { id: newId('tags'), target: 'acme/*', tags: ['region:eu'] }, now),
    );
    const alias = await store.write((db, now) =>
      insertAlias(
        db,
        organizationId,
        { id: newId('alias'), projectId: null, name: 'fast', models: ['m'], weights: [1] },
        now,
      ),
    );
    expect(await store.organizationProviders(organizationId)).toEqual({
      providers: [provider],
      mappings: [
        {
          id: 'acme/org/model-7b',
          providerId: 'acme',
          modelId: 'org/model-7b',
          externalId: 'org/model-7b',
          custom: true,
          createdAt: model.createdAt,
          revision: `${model.id} ${provider.updatedAt}`,
          names: ['acme/org/model-7b'],
          providerNames: ['custom', 'custom:acme'],
          prices: { prompt: 1n, completion: 9_000_000_000_000_000_000n },
          freeFlag: false,
          contextLength: 8192,
          ...attributesOf(model),
          stability: 'stable',
          tags: [],
        },
      ],
      keys: [key],
      tagSets: [tagSet],
      aliases: [alias],
    });
  });

  it('lists the keys of a provider in the order in which they were put', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId } = tenant;
    const keys = [1, 2, 3, 4].map(() => newProviderKey('openai'));
    const other = newProviderKey('mistral');
    await store.write((db, now) => {
      for (const key of [...keys, other]) insertProviderKey(db, organizationId, key, now);
    });
    const order = async () =>
      (await store.organizationProviders(organizationId)).keys
        .filter(({ provider }) => provider === 'openai')
        .map(({ id }) => keys.findIndex((key) => key.id === id));
    const place = (index: number, position: number) =>
      store.write((db) => placeProviderKey(db, organizationId, keys[index]?.id ?? '', position));
    expect(await order()).toEqual([0, 1, 2, 3]);
    await place(3, 1);
    expect(await order()).toEqual([3, 0, 1, 2]);
    await place(3, 2);
    expect(await order()).toEqual([0, 3, 1, 2]);
    await place(0, 100);
    expect(await order()).toEqual([3, 1, 2, 0]);
    await store.write((db, now) => deleteProviderKey(db, organizationId, keys[1]?.id ?? '', now));
    expect(await order()).toEqual([3, 2, 0]);
    const positions = await store.read((db) =>
      keysOfProvider(db, organizationId, 'openai').map(({ position }) => position),
    );
    expect(positions).toEqual([1, 2, 3]);
  });

  it('is nothing of another organization, even where both have a provider of the same name', async () => {
    const { store, tenant } = await storeWithTenant();
    const other = await addTenant(store);
    const ours = await addProvider(store, tenant.organizationId, 'acme');
    const theirs = await addProvider(store, other.organizationId, 'acme');
    const read = async (organizationId: string) => {
      const { providers, keys, mappings } = await store.organizationProviders(organizationId);
      return [...providers, ...keys, ...mappings].map(({ id }) => id);
    };
    expect(await read(tenant.organizationId)).toEqual([ours.provider.id, ours.key.id, 'acme/org/model-7b']);
    expect(await read(other.organizationId)).toEqual([theirs.provider.id, theirs.key.id, 'acme/org/model-7b']);
    expect(await read(newId('org'))).toEqual([]);
  });

  it('is the same object until this process or another one changes something', async () => {
    const { store, clock, path, tenant } = await storeWithTenant();
    const { organizationId } = tenant;
    const other = createStore({ path, clock });
    onTestFinished(() => other.close());
    const { key } = await addProvider(store, organizationId, 'acme');
    const first = await store.organizationProviders(organizationId);
    expect(await store.organizationProviders(organizationId)).toBe(first);

    await other.write((db, now) => updateProviderKey(db, organizationId, key.id, { label: 'Renamed' }, now));
    const second = await store.organizationProviders(organizationId);
    expect(second.keys.map(({ label }) => label)).toEqual(['Renamed']);
    expect(await store.organizationProviders(organizationId)).toBe(second);

    await store.write((db, now) => updateProviderKey(db, organizationId, key.id, { label: 'Again' }, now));
    const third = await store.organizationProviders(organizationId);
    expect(third.keys.map(({ label }) => label)).toEqual(['Again']);
    await store.write((db, now) => updateOrganization(db, organizationId, { name: 'Acme Ltd' }, now));
    expect(await store.organizationProviders(organizationId)).toEqual(third);
  });

  it('loses the models and keys of a deleted provider, and a later one of its name inherits none of them', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId } = tenant;
    const kept = await addProvider(store, organizationId, 'kept');
    const { provider } = await addProvider(store, organizationId, 'acme');
    await store.write((db, now) => deleteCustomProvider(db, organizationId, provider.id, now));
    const remaining = {
      providers: [kept.provider],
      mappings: [expect.objectContaining({ id: 'kept/org/model-7b' })],
      keys: [kept.key],
      tagSets: [],
      aliases: [],
    };
    expect(await store.organizationProviders(organizationId)).toEqual(remaining);
    const successor = await store.write((db, now) =>
      insertCustomProvider(db, organizationId, newProvider('acme'), now),
    );
    expect(await store.organizationProviders(organizationId)).toEqual({
      ...remaining,
      providers: [kept.provider, successor],
    });
  });
});
