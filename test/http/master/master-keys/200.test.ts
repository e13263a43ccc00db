import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeMember } from '../../../../src/admin/tenants/members.ts';
import { ID, owner, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const mkey = (number: number): string => `mkey_${String(number).padStart(32, '0')}`;
const path = (number: number): string => `/v1/master/master-keys/${mkey(number)}`;

const record = (number: number, description: string, createdBy: string, lastUsedAt: string | null = null) => ({
  id: mkey(number),
  createdAt: START,
  updatedAt: START,
  description,
  createdBy,
  createdByEmail: expect.stringMatching(/^(owner|admin|developer)@example\.com$/),
  maskedToken: 'pclm_abcd…wxyz',
  lastUsedAt,
});
const ofOwner = record(1, 'owner', ID.owner, START);
const ofAdmin = record(2, 'admin', ID.admin);
const ofDeveloper = record(3, 'developer', ID.developer);

describe('GET /v1/master/master-keys', () => {
  it('lists those of the organization, newest first, in pages, with their last use', async () => {
    expect(await outcome(server.request('GET', '/v1/master/master-keys'))).toEqual({
      status: 200,
      body: { masterKeys: [ofDeveloper, ofAdmin, ofOwner], nextCursor: null },
    });
    const first = JSON.parse((await server.request('GET', '/v1/master/master-keys?limit=2')).text);
    const second = await server.request('GET', `/v1/master/master-keys?limit=2&cursor=${first.nextCursor}`);
    expect([first.masterKeys.length, second.body]).toEqual([2, { masterKeys: [ofOwner], nextCursor: null }]);
  });

  it('shows developers the ones that act for them', async () => {
    const { body } = await server.request('GET', '/v1/master/master-keys', { token: server.tokens.developer });
    expect(body).toEqual({ masterKeys: [{ ...ofDeveloper, lastUsedAt: START }], nextCursor: null });
  });

  it('does not hold those whose maker has left', async () => {
    await server.store.write((db, now) => removeMember(db, owner, ID.admin, now));
    const { body } = await server.request('GET', '/v1/master/master-keys');
    expect(body).toEqual({ masterKeys: [ofDeveloper, ofOwner], nextCursor: null });
  });
});

describe('GET /v1/master/master-keys/{id}', () => {
  it('shows one, every field of it in the order of the record, and not the secret', async () => {
    const answer = await server.request('GET', path(1));
    expect(await outcome(answer)).toEqual({ status: 200, body: { masterKey: ofOwner } });
    expect(Object.keys(JSON.parse(answer.text).masterKey)).toEqual(Object.keys(ofOwner));
    expect(answer.text).not.toContain(server.tokens.owner);
  });
});

describe('PATCH /v1/master/master-keys/{id}', () => {
  it('renames one, and leaves its secret', async () => {
    server.clock.advance(1000);
    const updatedAt = '2026-01-31T12:00:01.000Z';
    expect(await outcome(server.request('PATCH', path(2), { body: { description: 'Terraform' } }))).toEqual({
      status: 200,
      body: { masterKey: { ...ofAdmin, description: 'Terraform', updatedAt } },
    });
    expect((await server.request('GET', '/v1/master/keys', { token: server.tokens.admin })).status).toBe(200);
  });
});

describe('DELETE /v1/master/master-keys/{id}', () => {
  it('ends one from the next request on', async () => {
    expect(await outcome(server.request('DELETE', path(2)))).toEqual({
      status: 200,
      body: { id: mkey(2), deleted: true },
    });
    expect((await server.request('GET', '/v1/master/keys', { token: server.tokens.admin })).status).toBe(401);
    expect((await server.request('GET', path(2))).status).toBe(404);
    expect((await server.request('DELETE', path(2))).status).toBe(404);
  });

  it.each([
    ['owner', 1],
    ['admin', 2],
    ['developer', 3],
  ] as const)('lets the key of an %s end itself', async (role, number) => {
    const token = server.tokens[role];
    expect((await server.request('DELETE', path(number), { token })).status).toBe(200);
    expect((await server.request('GET', '/v1/master/keys', { token })).status).toBe(401);
  });
});
