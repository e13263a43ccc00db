import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const invite = (body: object, token = server.tokens.owner) =>
  server.request('POST', '/v1/master/invitations', { body, token });

const invitation = {
  id: 'inv_new',
  createdAt: START,
  updatedAt: START,
  email: 'ada@example.com',
  role: 'developer',
  status: 'pending',
  invitedBy: ID.owner,
  invitedByEmail: 'owner@example.com',
  expiresAt: '2026-02-07T12:00:00.000Z',
  acceptedAt: null,
  memberId: null,
  maskedToken: 'pcli_abcd…wxyz',
};

describe('POST /v1/master/invitations', () => {
  it('invites for a week; the token is in this answer alone', async () => {
    expect(await outcome(invite({ email: 'Ada@Example.com', role: 'developer' }))).toEqual({
      status: 201,
      body: { invitation: { ...invitation, token: 'pcli_secret' } },
    });
    const listed = await server.request('GET', '/v1/master/invitations');
    expect(listed.body).toEqual({ invitations: [invitation], nextCursor: null });
    const [{ id }] = JSON.parse(listed.text).invitations;
    expect((await server.request('GET', `/v1/master/invitations/${id}`)).body).toEqual({ invitation });
  });

  it.each([
    [{ value: 1, unit: 'minutes' }, '2026-01-31T12:01:00.000Z'],
    [{ value: 720, unit: 'hours' }, '2026-03-02T12:00:00.000Z'],
    [{ value: 30, unit: 'days' }, '2026-03-02T12:00:00.000Z'],
  ])('as long as it is wanted: %j', async (ttl, expiresAt) => {
    const email = `${ttl.value}-${ttl.unit}@example.com`;
    const { body } = await invite({ email, role: 'admin', ttl }, server.tokens.admin);
    expect(body).toEqual({
      invitation: {
        ...invitation,
        email,
        role: 'admin',
        invitedBy: ID.admin,
        invitedByEmail: 'admin@example.com',
        expiresAt,
        token: 'pcli_secret',
      },
    });
  });

  it('stores a hash of the token', async () => {
    const { text } = await invite({ email: 'secret@example.com', role: 'owner' });
    const { token } = JSON.parse(text).invitation;
    const rows = await server.store.read(({ connection }) => [
      ...connection.prepare('SELECT * FROM invitations').all(),
      ...connection.prepare('SELECT * FROM audit').all(),
    ]);
    expect(rows.length).toBeGreaterThan(1);
    expect(JSON.stringify(rows)).not.toContain(token);
  });
});
