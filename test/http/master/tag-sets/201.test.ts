import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, startManagementServer } from '../management-server.ts';
import { addCustomProvider } from '../provider-fixtures.ts';

const NOW = '2026-01-31T12:00:00.000Z';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
  await addCustomProvider(server, { name: 'acme' });
});
afterAll(() => server.close());

it.each([
  ['a model', 'sandbox-free', ['team:research'], ['team:research']],
  [
    'a model at a provider',
    'sandbox/sandbox-paid',
    ['reviewed', 'cost-centre:42', 'reviewed'],
    ['cost-centre:42', 'reviewed'],
  ],
  ['a provider of the catalogue', 'sandbox/*', ['regions:eu'], ['regions:eu']],
  [
    'a custom provider, of which it states facts too',
    'acme/*',
    ['region:eu', 'no_training'],
    ['no_training', 'region:eu'],
  ],
])('stand on %s from now on', async (_what, target, tags, shown) => {
  const answer = await server.request('POST', '/v1/master/tag-sets', { body: { target, tags } });
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({
    tagSet: { id: expect.stringMatching(/^tags_[0-9a-f]{32}$/), createdAt: NOW, updatedAt: NOW, target, tags: shown },
    widens: { count: 0, cells: [] },
  });
});
