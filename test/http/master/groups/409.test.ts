// A change of who is in a group, and its deletion, can be refused when they permit something new.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it('refuses to let anyone out of a group, or to delete it, where that permits something new', async () => {
  const made = await server.request('POST', '/v1/master/groups', { body: { name: 'limited' } });
  const path = `/v1/master/groups/${JSON.parse(made.text).group.id}`;
  await server.request('POST', `${path}/iam`, {
    body: { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } },
  });
  await server.request('PATCH', path, { body: { addKeys: [ID.ownerKey], failOnNewAccess: true } });
  const before = await server.request('GET', path);

  const answers = [
    await server.request('PATCH', path, { body: { removeKeys: [ID.ownerKey], failOnNewAccess: true } }),
    await server.request('DELETE', `${path}?failOnNewAccess=true`),
  ];
  const error = {
    message: "The change is refused: it would newly permit sandbox/sandbox-paid for The owner's.",
    type: 'invalid_request_error',
    param: null,
    code: 'new_access',
  };
  expect(answers.map(({ status, text }) => [status, JSON.parse(text).error])).toEqual([
    [409, error],
    [409, error],
  ]);
  expect((await server.request('GET', path)).text).toBe(before.text);
  expect((await server.request('DELETE', path)).status).toBe(200);
});
