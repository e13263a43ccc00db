import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const NAME = 'must be a text of 1 to 256 characters, not all of them blank.';

describe('PATCH /v1/master/organization is refused for', () => {
  it.each([
    [{}, '', 'The request body must hold at least one field.'],
    [{ name: '' }, '/name', `/name ("") ${NAME}`],
    [{ name: ' ' }, '/name', `/name (" ") ${NAME}`],
    [{ name: null }, '/name', `/name (null) ${NAME}`],
    [{ plan: 'gold' }, '/plan', '/plan ("gold") must be one of free, pro, enterprise.'],
    [{ id: ID.otherOrganization }, '/id', `/id ("${ID.otherOrganization}") is not a known field.`],
  ])('%j', async (body, param, message) => {
    expect(await outcome(server.request('PATCH', '/v1/master/organization', { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});
