import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const LIMIT = 'cannot be set: a platform key makes no calls that could be limited.';

describe('POST /v1/master/platform-keys is refused for', () => {
  it.each([
    [{ projectId: undefined }, '/projectId', '/projectId is missing.'],
    [{ description: 7 }, '/description', '/description (7) must be a text of at most 256 characters, or null.'],
    [{ usageLimit: '1' }, '/usageLimit', `/usageLimit ("1") ${LIMIT}`],
    [{ periodUsageLimit: '1' }, '/periodUsageLimit', `/periodUsageLimit ("1") ${LIMIT}`],
    [{ expiresAt: '2030-01-01' }, '/expiresAt', `/expiresAt ("2030-01-01") ${LIMIT}`],
    [{ kind: 'regular' }, '/kind', '/kind ("regular") is not a known field.'],
  ])('%j', async (fields, param, message) => {
    const body = { projectId: ID.project, ...fields };
    expect(await outcome(server.request('POST', '/v1/master/platform-keys', { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});
