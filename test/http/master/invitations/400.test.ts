import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/id.ts';
import { insertMember } from '../../../../src/store/tenants/member-records.ts';
import { ID, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const EMAIL = 'must be an e-mail address of at most 254 ASCII characters.';
const TTL = 'must be a whole number from 1, and all together at most 30 days.';
const ada = { email: 'ada@example.com', role: 'developer' };

const invite = (body: object) => outcome(server.request('POST', '/v1/master/invitations', { body }));
const invalid = (message: string, param: string | null = null) => ({
  status: 400,
  body: refused('invalid_request', message, param),
});

describe('POST /v1/master/invitations is refused for', () => {
  it.each([
    [{ role: 'admin' }, '/email', '/email is missing.'],
    [{ email: 'ada@example.com' }, '/role', '/role is missing.'],
    [{ ...ada, email: 'ada' }, '/email', `/email ("ada") ${EMAIL}`],
    [{ ...ada, email: 'a da@example.com' }, '/email', `/email ("a da@example.com") ${EMAIL}`],
    [{ ...ada, email: 'ada@@example.com' }, '/email', `/email ("ada@@example.com") ${EMAIL}`],
    [{ ...ada, email: `${'a'.repeat(250)}@b.c` }, '/email', `/email ("${'a'.repeat(99)}…) ${EMAIL}`],
    [{ ...ada, role: 'guest' }, '/role', '/role ("guest") must be one of owner, admin, developer.'],
    [{ ...ada, ttl: { value: 0, unit: 'days' } }, '/ttl/value', `/ttl/value (0) ${TTL}`],
    [{ ...ada, ttl: { value: 31, unit: 'days' } }, '/ttl/value', 'An invitation can be accepted for at most 30 days.'],
    [
      { ...ada, ttl: { value: 1, unit: 'weeks' } },
      '/ttl/unit',
      '/ttl/unit ("weeks") must be one of minutes, hours, days.',
    ],
    [{ ...ada, password: 'x' }, '/password', '/password ("x") is not a known field.'],
  ])('%j', async (body, param, message) => {
    expect(await invite(body)).toEqual(invalid(message, param));
  });

  it('the address of a member, or of a pending invitation, in any case', async () => {
    expect(await invite({ ...ada, email: 'Admin@Example.com' })).toEqual(
      invalid('Admin@Example.com is a member already.', '/email'),
    );
    expect(await invite({ ...ada, ttl: { value: 1, unit: 'minutes' } })).toMatchObject({ status: 201 });
    expect(await invite({ ...ada, email: 'ADA@example.com' })).toEqual(
      invalid('ADA@example.com is invited already: revoke that invitation first.', '/email'),
    );
    server.clock.advance(60_000);
    expect(await invite(ada)).toMatchObject({ status: 201 });
  });

  it('more than 1,000 members and pending invitations', async () => {
    await server.store.write((db) => {
      for (let made = 3; made < 999; made++) {
        const id = newId('mem');
        const email = `${id}@example.com`;
        const organizationId = ID.organization;
        insertMember(db, { id, organizationId, email, name: null, role: 'developer', passwordHash: null }, startMs);
      }
    });
    expect(await invite({ ...ada, email: 'one-more@example.com' })).toEqual(
      invalid('An organization has at most 1000 members and pending invitations.'),
    );
  });
});
