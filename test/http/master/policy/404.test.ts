import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const noKey = refused('not_found', 'There is no such key.');

it.each([
  ['of another organization', ID.foreignKey, 'owner'],
  ['that is not there', ID.absent, 'owner'],
  ["that is not the developer's", ID.ownerKey, 'developer'],
] as const)('a key %s has neither a table nor a decision', async (_, key, role) => {
  const token = server.tokens[role];
  const body = { key, request: { model: 'sandbox-paid' } };
  expect(await outcome(server.request('GET', `/v1/master/keys/${key}/access`, { token }))).toEqual({
    status: 404,
    body: noKey,
  });
  expect(await outcome(server.request('POST', '/v1/master/policy/evaluate', { body, token }))).toEqual({
    status: 404,
    body: noKey,
  });
});

it('a platform key calls no models', async () => {
  expect(await outcome(server.request('GET', `/v1/master/keys/${ID.platformKey}/access`))).toEqual({
    status: 404,
    body: refused('not_found', 'There is no such key that calls models.'),
  });
});

it.each([
  ['of no likeness to another', 'no-such-model', ''],
  ['that nearly has the name of another', 'gpt-4o-mni', ' Did you mean `gpt-4o-mini`?'],
])('an unknown model %s', async (_, model, hint) => {
  const body = { request: { model } };
  expect(await outcome(server.request('POST', '/v1/master/policy/evaluate', { body }))).toEqual({
    status: 404,
    body: refused('model_not_found', `The model \`${model}\` does not exist.${hint}`),
  });
});
