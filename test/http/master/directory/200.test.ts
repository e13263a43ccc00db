import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const times = { createdAt: START, updatedAt: START };

describe('GET /v1/master/projects', () => {
  it("lists the organization's projects, for every role", async () => {
    for (const token of [server.tokens.owner, server.tokens.developer]) {
      const { status, body } = await server.request('GET', '/v1/master/projects', { token });
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          projects: [{ id: ID.project, ...times, name: 'Main', cachingEnabled: true, cacheDurationSeconds: 60 }],
          nextCursor: null,
        },
      });
    }
  });
});

describe('GET /v1/master/members', () => {
  it('lists the members, newest first, in pages', async () => {
    const first = await server.request('GET', '/v1/master/members?limit=2');
    expect(first).toMatchObject({
      status: 200,
      body: {
        members: [
          { id: ID.developer, ...times, email: 'developer@example.com', name: null, role: 'developer' },
          { id: ID.admin, ...times, email: 'admin@example.com', name: null, role: 'admin' },
        ],
      },
    });
    const { nextCursor } = JSON.parse(first.text);
    const second = await server.request('GET', `/v1/master/members?limit=2&cursor=${nextCursor}`);
    expect(second.body).toEqual({
      members: [{ id: ID.owner, ...times, email: 'owner@example.com', name: null, role: 'owner' }],
      nextCursor: null,
    });
  });

  it('is not for developers', async () => {
    expect(await outcome(server.request('GET', '/v1/master/members', { token: server.tokens.developer }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'A developer can manage his own keys only.'),
    });
  });
});
