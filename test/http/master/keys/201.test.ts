import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../../../src/domain/id.ts';
import { ID, pepper, START } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('POST /v1/master/keys', () => {
  it("makes a key from the specification's body, and its token authenticates", async () => {
    const { status, body, text } = await server.request('POST', '/v1/master/keys', {
      body: {
        projectId: ID.project,
        description: 'CI',
        periodUsageLimit: '10.00',
        periodUsageDurationValue: 1,
        periodUsageDurationUnit: 'day',
      },
    });
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        key: {
          id: 'key_new',
          createdAt: START,
          updatedAt: START,
          description: 'CI',
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
          periodUsageLimit: '10',
          periodUsageDurationValue: 1,
          periodUsageDurationUnit: 'day',
          periodUsageAlignment: null,
          currentPeriodUsage: '0',
          currentPeriodStartedAt: null,
          currentPeriodResetAt: null,
          lastUsedAt: null,
          previousTokenEndsAt: null,
          tags: [],
          sharesLimitsOf: null,
          requestsPerMinute: null,
          tokensPerMinute: null,
          token: 'pcl_secret',
        },
      },
    });
    const { id, token } = JSON.parse(text).key;
    const found = await server.store.findKeyByHash(hashSecret(token, pepper));
    expect(found).toMatchObject({ keyId: id, memberId: ID.owner });
    expect((await server.request('GET', `/v1/master/keys/${id}`)).text).not.toContain(token);
  });
});
