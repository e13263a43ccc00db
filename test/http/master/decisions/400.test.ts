import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const TIME = 'must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z';

it.each([
  ['limit=0', '/limit', '/limit ("0") must be a whole number from 1 to 200.'],
  ['limit=201', '/limit', '/limit ("201") must be a whole number from 1 to 200.'],
  ['from=yesterday', '/from', `/from ("yesterday") ${TIME}.`],
  ['from=2026-01-02&to=2026-01-01', '/from', '/from must lie before /to.'],
  ['address=here', '/address', '/address: "here" is neither an IP address nor a CIDR range.'],
  ['address=10.0.0.0/33', '/address', '/address: "10.0.0.0/33" must end in a prefix length from 0 to 32.'],
  ['outcome=maybe', '/outcome', '/outcome ("maybe") must be one of permit, deny.'],
  ['reason=because', '/reason', '/reason ("because") must be a rule type, such as deny_models.'],
  ['ruleId=1', '/ruleId', '/ruleId ("1") must be an id: its prefix and 32 hexadecimal digits.'],
  ['cursor=bad', '/cursor', 'The cursor does not belong to this list.'],
])('for %s', async (query, param, message) => {
  for (const path of ['calls', 'decisions']) {
    const { status, text } = await server.request('GET', `/v1/master/${path}?${query}`);
    expect([status, JSON.parse(text).error]).toMatchObject([400, { param, message }]);
  }
});

it('for a parameter that there is not', async () => {
  expect((await server.request('GET', '/v1/master/decisions?groupId=1')).status).toBe(400);
});
