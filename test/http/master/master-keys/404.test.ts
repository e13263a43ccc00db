import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const path = (number: number): string => `/v1/master/master-keys/mkey_${String(number).padStart(32, '0')}`;

describe('a master key is not found', () => {
  it.each([
    ['of another organization', path(4), 'owner'],
    ['that does not exist', path(9), 'owner'],
    ['of someone else, by a developer', path(2), 'developer'],
  ] as const)('%s', async (_, target, role) => {
    const token = server.tokens[role];
    const noKey = { status: 404, body: refused('not_found', 'There is no such master key.') };
    expect(await outcome(server.request('GET', target, { token }))).toEqual(noKey);
    expect(await outcome(server.request('PATCH', target, { token, body: { description: 'Mine' } }))).toEqual(noKey);
    expect(await outcome(server.request('DELETE', target, { token }))).toEqual(noKey);
  });
});
