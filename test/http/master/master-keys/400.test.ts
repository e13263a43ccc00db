import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const TEXT = 'must be a text of 1 to 256 characters, not all of them blank.';
const target = `/v1/master/master-keys/mkey_${'2'.padStart(32, '0')}`;

describe('POST /v1/master/master-keys is refused for', () => {
  it.each([
    [{}, '/description', '/description is missing.'],
    [{ description: '' }, '/description', `/description ("") ${TEXT}`],
    [{ description: null }, '/description', `/description (null) ${TEXT}`],
    [
      { description: 'x', createdBy: ID.owner },
      '/createdBy',
      `/createdBy ("${ID.owner}") cannot be set: a master key acts for the member who makes it.`,
    ],
    [{ description: 'x', role: 'owner' }, '/role', '/role ("owner") is not a known field.'],
  ])('%j', async (body, param, message) => {
    expect(await outcome(server.request('POST', '/v1/master/master-keys', { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });

  it('the eleventh, until one is deleted; another organization has its own ten', async () => {
    const add = (token = server.tokens.owner) =>
      server.request('POST', '/v1/master/master-keys', { token, body: { description: 'One more' } });
    const [first, ...others] = await Promise.all(Array.from({ length: 7 }, () => add()));
    expect([first, ...others].map((answer) => answer?.status)).toEqual(Array(7).fill(201));
    expect(await outcome(add())).toEqual({
      status: 400,
      body: refused('invalid_request', 'An organization has at most 10 master keys: delete one first.'),
    });
    expect((await add(server.tokens.foreigner)).status).toBe(201);
    const { id } = JSON.parse(first?.text ?? '').masterKey;
    await server.request('DELETE', `/v1/master/master-keys/${id}`);
    expect((await add()).status).toBe(201);
  });
});

describe('PATCH /v1/master/master-keys/{id} is refused for', () => {
  it.each([
    [{}, '', 'The request body must hold at least one field.'],
    [{ description: ' ' }, '/description', `/description (" ") ${TEXT}`],
    [{ lastUsedAt: null }, '/lastUsedAt', '/lastUsedAt (null) is not a known field.'],
  ])('%j', async (body, param, message) => {
    expect(await outcome(server.request('PATCH', target, { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});
