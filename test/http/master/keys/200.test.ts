import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const ownerKey = {
  id: ID.ownerKey,
  createdAt: START,
  updatedAt: START,
  description: "The owner's",
  projectId: ID.project,
  createdBy: ID.owner,
  createdByEmail: 'owner@example.com',
  kind: 'regular',
  status: 'active',
  state: 'active',
  maskedToken: 'pcl_abcd…wxyz',
  expiresAt: null,
  usageLimit: null,
  usage: '0',
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
  currentPeriodUsage: null,
  currentPeriodStartedAt: null,
  currentPeriodResetAt: null,
  lastUsedAt: null,
  previousTokenEndsAt: null,
  tags: [],
  sharesLimitsOf: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
};
const developerKey = {
  ...ownerKey,
  id: ID.developerKey,
  description: "The developer's",
  createdBy: ID.developer,
  createdByEmail: 'developer@example.com',
};
const playgroundKey = {
  ...developerKey,
  id: ID.playgroundKey,
  description: null,
  kind: 'playground',
  maskedToken: null,
};

describe('GET /v1/master/keys', () => {
  it('lists the keys, newest first, and is not to be stored on the way', async () => {
    const { status, body, headers } = await server.request('GET', '/v1/master/keys');
    expect({ status, body }).toEqual({
      status: 200,
      body: { keys: [developerKey, ownerKey], nextCursor: null },
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  });

  it('comes in pages that a cursor connects', async () => {
    const first = await server.request('GET', '/v1/master/keys?limit=1');
    expect(first.body).toEqual({ keys: [developerKey], nextCursor: expect.any(String) });
    const { nextCursor } = JSON.parse(first.text);
    const second = await server.request('GET', `/v1/master/keys?limit=1&cursor=${nextCursor}`);
    expect(second.body).toEqual({ keys: [ownerKey], nextCursor: null });
  });

  it('lists those of one project', async () => {
    const ofProject = await server.request('GET', `/v1/master/keys?projectId=${ID.otherProject}`);
    expect(ofProject.body).toEqual({ keys: [], nextCursor: null });
  });

  it('shows developers their own', async () => {
    const { body } = await server.request('GET', '/v1/master/keys', { token: server.tokens.developer });
    expect(body).toEqual({ keys: [developerKey], nextCursor: null });
  });

  it('lists the playground keys where they are asked for', async () => {
    const { body } = await server.request('GET', '/v1/master/keys?kind=playground');
    expect(body).toEqual({ keys: [playgroundKey], nextCursor: null });
  });
});

describe('GET /v1/master/keys/{id}', () => {
  it('shows one key, every field of it in the order of the record', async () => {
    const { status, body, text } = await server.request('GET', `/v1/master/keys/${ID.ownerKey}`);
    expect({ status, body }).toEqual({ status: 200, body: { key: ownerKey } });
    expect(Object.keys(JSON.parse(text).key)).toEqual(Object.keys(ownerKey));
  });
});

describe('PATCH and DELETE /v1/master/keys/{id}', () => {
  it('renames, limits, disables and deletes a key', async () => {
    server.clock.advance(1000);
    const updatedAt = '2026-01-31T12:00:01.000Z';
    const target = `/v1/master/keys/${ID.ownerKey}`;
    const renamed = await server.request('PATCH', target, { body: { description: 'Renamed' } });
    expect(await outcome(renamed)).toEqual({
      status: 200,
      body: { key: { ...ownerKey, description: 'Renamed', updatedAt }, widens: { count: 0, cells: [] } },
    });

    const limits = {
      usageLimit: '9000000',
      periodUsageLimit: '0.50',
      periodUsageDurationValue: 12,
      periodUsageDurationUnit: 'month',
    };
    const limited = await server.request('PATCH', target, {
      body: { ...limits, status: 'inactive', description: null },
    });
    expect(limited.body).toEqual({
      widens: { count: 0, cells: [] },
      key: {
        ...ownerKey,
        ...limits,
        periodUsageLimit: '0.5',
        currentPeriodUsage: '0',
        description: null,
        status: 'inactive',
        state: 'disabled',
        updatedAt,
      },
    });

    expect((await server.request('DELETE', target)).body).toEqual({ id: ID.ownerKey, deleted: true });
    expect((await server.request('GET', target)).status).toBe(404);
  });
});
