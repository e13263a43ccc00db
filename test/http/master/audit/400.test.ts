import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../../../src/admin/audit/audit-trail.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const TIME = 'must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z.';
const CURSOR = 'The cursor does not belong to this list.';

describe('GET /v1/master/audit is refused for', () => {
  it.each([
    ['from=yesterday', '/from', `/from ("yesterday") ${TIME}`],
    ['to=2026-02-30', '/to', `/to ("2026-02-30") ${TIME}`],
    ['from=2026-01-31T12:00:00', '/from', `/from ("2026-01-31T12:00:00") ${TIME}`],
    ['from=2026-01-31T12:00:00Z&to=2026-01-31T12:00:00Z', '/from', '/from must lie before /to.'],
    ['from=2026-01-01&from=2026-01-02', '/from', 'The query parameter from is given more than once.'],
    ['action=a.b&action=c.d', '/action', 'The query parameter action is given more than once.'],
    ['action=key.made', '/action', `action must be one of ${AUDIT_ACTIONS.join(', ')}.`],
    ['limit=201', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['cursor=x', '/cursor', CURSOR],
    // Well formed, but of no entry: another list's.
    [`cursor=${Buffer.from(`key_${'0'.repeat(32)}`).toString('base64url')}`, '/cursor', CURSOR],
  ])('?%s', async (query, param, message) => {
    expect(await outcome(server.request('GET', `/v1/master/audit?${query}`))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});
