import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const AMOUNT = 'must be null or an amount in USD: a plain decimal string such as "12.5", at most 9000000.';
const TOGETHER = 'periodUsageLimit, periodUsageDurationValue and periodUsageDurationUnit come together or not at all.';

describe('PATCH …/budget is refused for', () => {
  it.each([
    [{}, '', 'The request body must hold at least one field.'],
    [{ usageLimit: '-1' }, '/usageLimit', `/usageLimit ("-1") ${AMOUNT}`],
    [{ periodUsageLimit: 5 }, '/periodUsageLimit', `/periodUsageLimit (5) ${AMOUNT}`],
    [{ periodUsageLimit: '5' }, '/periodUsageDurationValue', TOGETHER],
    [{ limit: '5' }, '/limit', '/limit ("5") is not a known field.'],
  ])('%j, and changes nothing', async (body, param, message) => {
    expect(await outcome(server.request('PATCH', '/v1/master/organization/budget', { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
    expect((await server.request('GET', '/v1/master/budgets')).body).toEqual({ budgets: [], nextCursor: null });
  });
});
