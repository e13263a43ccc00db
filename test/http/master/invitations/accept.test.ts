// POST /v1/master/invitations/accept: the token in the body is all that is needed (issue 12, 17).
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { generateSecret } from '../../../../src/domain/id.ts';
import { START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const PATH = '/v1/master/invitations/accept';

const accept = (body: unknown) => server.request('POST', PATH, { token: null, body });

async function invite(): Promise<string> {
  const body = { email: 'ada@example.com', role: 'developer' };
  const { text } = await server.request('POST', '/v1/master/invitations', { body });
  return JSON.parse(text).invitation.token;
}

const UNKNOWN = { status: 404, body: refused('not_found', 'There is no open invitation with this token.') };

describe('the holder of a token', () => {
  it('becomes a member by it, without a master key, once', async () => {
    const token = await invite();
    const member = {
      id: 'mem_new',
      createdAt: START,
      updatedAt: START,
      email: 'ada@example.com',
      name: 'Ada',
      role: 'developer',
      requestsPerMinute: null,
      tokensPerMinute: null,
    };
    const answer = await accept({ token, name: 'Ada' });
    expect(await outcome(answer)).toEqual({ status: 201, body: { member } });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect((await server.request('GET', '/v1/master/members/ada@example.com')).body).toEqual({ member });
    expect(await outcome(accept({ token }))).toEqual(UNKNOWN);
  });

  it('is named in the audit log as the one who accepted', async () => {
    const { text } = await accept({ token: await invite() });
    const { id } = JSON.parse(text).member;
    const { text: log } = await server.request('GET', '/v1/master/audit?limit=2');
    const entries: { action: string; actor: unknown }[] = JSON.parse(log).entries;
    expect(entries.map(({ action, actor }) => [action, actor])).toMatchObject([
      ['member.create', { kind: 'person', id, memberId: id }],
      ['invitation.accept', { kind: 'person', id, memberId: id }],
    ]);
  });
});

describe('it is refused', () => {
  it('for any other token, which the answer does not repeat', async () => {
    for (const token of [generateSecret('invitation'), generateSecret('master'), server.tokens.owner, '']) {
      expect(await outcome(accept({ token }))).toEqual(UNKNOWN);
    }
    expect(await outcome(accept({ token: 'x'.repeat(300) }))).toEqual({
      status: 400,
      body: refused('invalid_request', '/token must be the token of an invitation.', '/token'),
    });
  });

  it('for a token in the query, which would be in the logs of every proxy', async () => {
    const token = await invite();
    expect(await outcome(server.request('POST', `${PATH}?token=${token}`, { token: null, body: {} }))).toEqual({
      status: 400,
      body: refused('invalid_request', 'The query parameter token is not known: this request takes none.', '/token'),
    });
    expect((await accept({ token })).status).toBe(201);
  });

  it('for a body that is larger than a token needs', async () => {
    const { status } = await accept({ token: 'x'.repeat(5000) });
    expect(status).toBe(413);
  });
});
