import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const ROLES = 'must be one of owner, admin, developer.';
const NAME = 'must be a text of 1 to 256 characters, not all of them blank, or null.';

describe('PATCH /v1/master/members/{member} is refused for', () => {
  it.each([
    [{}, '', 'The request body must hold at least one field.'],
    [{ role: 'root' }, '/role', `/role ("root") ${ROLES}`],
    [{ role: null }, '/role', '/role (null) must be of type string.'],
    [{ name: '' }, '/name', `/name ("") ${NAME}`],
    [{ name: ' ' }, '/name', `/name (" ") ${NAME}`],
    [
      { email: 'new@example.com' },
      '/email',
      '/email ("new@example.com") cannot be changed: invite the new address and remove the member.',
    ],
    [{ passwordHash: 'x' }, '/passwordHash', '/passwordHash ("x") is not a known field.'],
  ])('%j', async (body, param, message) => {
    expect(await outcome(server.request('PATCH', `/v1/master/members/${ID.admin}`, { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});

describe('the last owner', () => {
  it.each(['admin', 'developer'])('is not made %s', async (role) => {
    expect(await outcome(server.request('PATCH', `/v1/master/members/${ID.owner}`, { body: { role } }))).toEqual({
      status: 400,
      body: refused('invalid_request', 'The last owner of an organization cannot be demoted.', '/role'),
    });
  });

  it('is not removed', async () => {
    expect(await outcome(server.request('DELETE', '/v1/master/members/owner@example.com'))).toEqual({
      status: 400,
      body: refused('invalid_request', 'The last owner of an organization cannot be removed.'),
    });
    expect((await server.request('GET', `/v1/master/members/${ID.owner}`)).status).toBe(200);
  });

  it('may be named again', async () => {
    const { status } = await server.request('PATCH', `/v1/master/members/${ID.owner}`, { body: { name: 'Ada' } });
    expect(status).toBe(200);
  });
});
