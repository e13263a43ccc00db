import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';
import { addCustomModel, addCustomProvider } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/custom-models';

describe('custom models', () => {
  it('are listed newest first, in pages, and by provider', async () => {
    const one = await addCustomProvider(server, { name: 'one' });
    const two = await addCustomProvider(server, { name: 'two' });
    for (const model of ['a', 'b']) await addCustomModel(server, { customProviderId: one, model });
    await addCustomModel(server, { customProviderId: two, model: 'c' });
    const listed = async (query: string) => {
      const { customModels, nextCursor } = JSON.parse((await server.request('GET', `${PATH}${query}`)).text);
      return { names: customModels.map(({ name }: { name: string }) => name), nextCursor };
    };
    expect(await listed('')).toEqual({ names: ['two/c', 'one/b', 'one/a'], nextCursor: null });
    expect(await listed(`?customProviderId=${one}`)).toEqual({ names: ['one/b', 'one/a'], nextCursor: null });
    const { nextCursor } = await listed('?limit=2');
    expect(await listed(`?limit=2&cursor=${nextCursor}`)).toEqual({ names: ['one/a'], nextCursor: null });
  });

  it('change in what is named alone, prices one by one, and vision with the modalities', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'acme' });
    const pricing = { prompt: '0.000001', completion: '0.000002' };
    const id = await addCustomModel(server, { customProviderId, model: 'm', pricing, contextLength: 1000 });
    const change = async (body: object) => {
      const answer = await server.request('PATCH', `${PATH}/${id}`, { body });
      const { customModel } = JSON.parse(answer.text);
      return customModel ?? answer.text;
    };
    const before = JSON.parse((await server.request('GET', `${PATH}/${id}`)).text).customModel;
    const changed = { displayName: 'M', contextLength: null, maxOutput: 10, pricing: { prompt: null, request: '1' } };
    expect(await change(changed)).toEqual({
      ...before,
      ...changed,
      pricing: { ...before.pricing, prompt: null, completion: '0.000002', request: '1' },
      inputPricePerMillion: null,
    });
    expect(await change({ outputPricePerMillion: null, inputPricePerMillion: '1' })).toMatchObject({
      pricing: { prompt: '0.000001', completion: null },
    });
    const seen = async (body: object) => {
      const { vision, inputModalities } = await change(body);
      return [vision, inputModalities];
    };
    expect(await seen({ vision: true })).toEqual([true, ['text', 'image']]);
    expect(await seen({ inputModalities: ['image'] })).toEqual([true, ['image']]);
    expect(await seen({ tools: true })).toEqual([true, ['image']]);
    expect(await seen({ vision: false })).toEqual([false, ['text']]);
    expect(await seen({ inputModalities: ['text', 'image', 'audio'] })).toEqual([true, ['text', 'image', 'audio']]);
  });

  it('are found by no request while they are inactive, nor after their deletion', async () => {
    const customProviderId = await addCustomProvider(server, { name: 'resting' });
    const id = await addCustomModel(server, { customProviderId, model: 'm' });
    const found = async () =>
      (await server.store.organizationProviders(ID.organization)).mappings.filter(
        ({ providerId }) => providerId === 'resting',
      ).length;
    const seen = [await found()];
    await server.request('PATCH', `${PATH}/${id}`, { body: { status: 'inactive' } });
    seen.push(await found());
    await server.request('PATCH', `${PATH}/${id}`, { body: { status: 'active' } });
    seen.push(await found());
    expect((await server.request('DELETE', `${PATH}/${id}`)).text).toBe(
      JSON.stringify({ id, deleted: true, widens: { count: 0, cells: [] } }),
    );
    seen.push(await found());
    expect(seen).toEqual([1, 0, 1, 0]);
    await addCustomModel(server, { customProviderId, model: 'm' });
  });
});
