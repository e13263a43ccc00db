import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { acceptInvitation } from '../../../../src/admin/sign-in/accept-invitation.ts';
import { createInvitation } from '../../../../src/admin/tenants/invitations.ts';
import { cli, ID, pepper } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const PATH = '/v1/master/invitations';

async function invite(body: object = {}, token = server.tokens.owner): Promise<{ id: string; token: string }> {
  const wanted = { email: 'ada@example.com', role: 'developer', ...body };
  return JSON.parse((await server.request('POST', PATH, { body: wanted, token })).text).invitation;
}

const statusOf = async (id: string): Promise<unknown> =>
  JSON.parse((await server.request('GET', `${PATH}/${id}`)).text).invitation.status;

const accept = (token: string) =>
  server.store.write((db, now) => acceptInvitation(db, { token }, { now, peppers: [pepper], by: 'cli' }));

describe('GET /v1/master/invitations', () => {
  it('says the state of each: pending, accepted, revoked, expired', async () => {
    const accepted = await invite({ email: 'a@example.com' });
    const revoked = await invite({ email: 'b@example.com' });
    const expired = await invite({ email: 'c@example.com', ttl: { value: 1, unit: 'minutes' } });
    const pending = await invite({ email: 'd@example.com' });
    const { member } = await accept(accepted.token);
    await server.request('DELETE', `${PATH}/${revoked.id}`);
    expect(await statusOf(expired.id)).toBe('pending');
    server.clock.advance(60_000);

    const { invitations } = JSON.parse((await server.request('GET', PATH)).text);
    expect(invitations.map(({ id, status, memberId }: Record<string, unknown>) => [id, status, memberId])).toEqual([
      [pending.id, 'pending', null],
      [expired.id, 'expired', null],
      [revoked.id, 'revoked', null],
      [accepted.id, 'accepted', member.id],
    ]);
  });
});

describe('an invitation', () => {
  it('says who invited by id and e-mail; the command line is nobody', async () => {
    await invite({ email: 'a@example.com' });
    await invite({ email: 'b@example.com' }, server.tokens.admin);
    await server.store.write((db, now) =>
      createInvitation(db, cli, { email: 'c@example.com', role: 'developer' }, { now, pepper }),
    );

    const { invitations } = JSON.parse((await server.request('GET', PATH)).text);

    expect(
      invitations.map(({ invitedBy, invitedByEmail }: Record<string, unknown>) => [invitedBy, invitedByEmail]),
    ).toEqual([
      [null, null],
      [ID.admin, 'admin@example.com'],
      [ID.owner, 'owner@example.com'],
    ]);
  });
});

describe('DELETE /v1/master/invitations/{id}', () => {
  it('revokes it: its token is worth nothing, and the address can be invited again', async () => {
    const { id, token } = await invite();
    for (const _ of ['once', 'twice']) {
      expect(await outcome(server.request('DELETE', `${PATH}/${id}`))).toEqual({
        status: 200,
        body: { id: 'inv_new', deleted: true },
      });
    }
    await expect(accept(token)).rejects.toMatchObject({ status: 404 });
    expect(await statusOf((await invite()).id)).toBe('pending');
  });

  it('is refused for one that was accepted', async () => {
    const { id, token } = await invite();
    await accept(token);
    expect(await outcome(server.request('DELETE', `${PATH}/${id}`))).toEqual({
      status: 400,
      body: refused('invalid_request', 'The invitation has been accepted: remove the member instead.'),
    });
  });
});

describe('the invitations of a member', () => {
  it('are revoked when they leave', async () => {
    const { id } = await invite({}, server.tokens.admin);
    await server.request('DELETE', `/v1/master/members/${ID.admin}`);
    expect(await statusOf(id)).toBe('revoked');
  });

  it('are revoked if the new role could not make them', async () => {
    await server.request('PATCH', `/v1/master/members/${ID.admin}`, { body: { role: 'owner' } });
    const owner = await invite({ email: 'a@example.com', role: 'owner' }, server.tokens.admin);
    const admin = await invite({ email: 'b@example.com', role: 'admin' }, server.tokens.admin);
    const others = await invite({ email: 'c@example.com', role: 'owner' });
    const statuses = async () => [await statusOf(owner.id), await statusOf(admin.id), await statusOf(others.id)];

    await server.request('PATCH', `/v1/master/members/${ID.admin}`, { body: { role: 'admin' } });
    expect(await statuses()).toEqual(['revoked', 'pending', 'pending']);
    await server.request('PATCH', `/v1/master/members/${ID.admin}`, { body: { role: 'developer' } });
    expect(await statuses()).toEqual(['revoked', 'revoked', 'pending']);
  });
});
