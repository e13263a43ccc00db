import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const target = `/v1/master/platform-keys/${ID.platformKey}`;

const platformKey = {
  id: ID.platformKey,
  createdAt: START,
  updatedAt: START,
  description: null,
  projectId: ID.project,
  createdBy: ID.developer,
  createdByEmail: 'developer@example.com',
  kind: 'platform_secret',
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

it('GET /v1/master/platform-keys lists platform keys and no others, by project too; developers their own', async () => {
  const all = { platformKeys: [platformKey], nextCursor: null };
  const none = { platformKeys: [], nextCursor: null };
  const listed = async (query = '', token = server.tokens.owner) =>
    (await server.request('GET', `/v1/master/platform-keys${query}`, { token })).body;
  expect(await listed()).toEqual(all);
  expect(await listed(`?projectId=${ID.project}`)).toEqual(all);
  expect(await listed(`?projectId=${ID.otherProject}`)).toEqual(none);
  expect(await listed('', server.tokens.developer)).toEqual(all);
  expect(await listed('', server.tokens.foreigner)).toEqual(none);
  const { text } = await server.request('GET', '/v1/master/keys');
  expect(text).not.toContain(ID.platformKey);
});

it('GET /v1/master/platform-keys/{id} shows one', async () => {
  expect(await outcome(server.request('GET', target))).toEqual({ status: 200, body: { platformKey } });
});

it('DELETE /v1/master/platform-keys/{id} ends one', async () => {
  expect(await outcome(server.request('DELETE', target))).toEqual({
    status: 200,
    body: { id: ID.platformKey, deleted: true },
  });
  expect((await server.request('GET', target)).status).toBe(404);
});
