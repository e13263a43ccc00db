import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const UNKNOWN_NAME =
  'The query parameter groupby is not known: this request takes from, to, granularity, groupBy, projectId, keyId, memberId, ' +
  'limit, cursor, format.';
const TIME = 'must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z';

it.each([
  ['from=2026-02-30&to=2026-03-01', '/from', `/from ("2026-02-30") ${TIME}.`],
  ['groupby=key', '/groupby', UNKNOWN_NAME],
  ['limit=1&limit=2', '/limit', '/limit must be a whole number from 1 to 10000.'],
  ['cursor=nonsense', '/cursor', 'The cursor does not belong to this list.'],
])('names what is wrong with %s', async (query, param, message) => {
  expect(await outcome(server.request('GET', `/v1/master/usage?${query}`))).toEqual({
    status: 400,
    body: refused('invalid_request', message, param),
  });
});
