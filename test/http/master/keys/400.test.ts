import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const TTL = 'cannot be set here: the dashboard and the command line set expirations.';
const AMOUNT = 'must be null or an amount in USD: a plain decimal string such as "12.5", at most 9000000.';

describe('POST /v1/master/keys is refused for', () => {
  it.each([
    [{}, '/projectId', '/projectId is missing.'],
    [{ ttl: { value: 1, unit: 'days' } }, '/ttl', `/ttl ${TTL}`],
    [{ expiresAt: '2030-01-01T00:00:00Z' }, '/expiresAt', `/expiresAt ("2030-01-01T00:00:00Z") ${TTL}`],
    [{ name: 'x' }, '/name', '/name ("x") is not a known field.'],
    [{ usageLimit: 5 }, '/usageLimit', `/usageLimit (5) ${AMOUNT}`],
    [{ usageLimit: '-1' }, '/usageLimit', `/usageLimit ("-1") ${AMOUNT}`],
    [{ usageLimit: '1e3' }, '/usageLimit', `/usageLimit ("1e3") ${AMOUNT}`],
    [{ usageLimit: '9000001' }, '/usageLimit', 'An amount may be at most 9000000 USD.'],
    [
      { periodUsageLimit: '1' },
      '/periodUsageDurationValue',
      '/periodUsageDurationValue is required with periodUsageLimit.',
    ],
    [{ description: 7 }, '/description', '/description (7) must be a text of at most 256 characters, or null.'],
  ])('%j', async (fields, param, message) => {
    const body = 'projectId' in fields || param === '/projectId' ? fields : { projectId: ID.project, ...fields };
    const answer = await server.request('POST', '/v1/master/keys', { body });
    expect(await outcome(answer)).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });

  it.each([['__proto__'], ['constructor']])('the field %s', async (name) => {
    const answer = await server.request('POST', '/v1/master/keys', { body: `{"projectId":"x","${name}":{}}` });
    expect(await outcome(answer)).toEqual({
      status: 400,
      body: refused('invalid_request', `/${name} is not a known field.`, `/${name}`),
    });
  });

  it('what is not JSON', async () => {
    const answer = await server.request('POST', '/v1/master/keys', { body: '{"projectId":' });
    expect(await outcome(answer)).toEqual({
      status: 400,
      body: refused('invalid_json', 'The request body is not valid JSON.'),
    });
  });
});

describe('PATCH /v1/master/keys/{id} is refused for', () => {
  it.each([
    [{}, '', 'The request body must hold at least one field.'],
    [{ projectId: ID.project }, '/projectId', `/projectId ("${ID.project}") is not a known field.`],
    [{ status: 'deleted' }, '/status', '/status ("deleted") must be one of active, inactive.'],
    [{ expiresAt: null }, '/expiresAt', `/expiresAt (null) ${TTL}`],
  ])('%j', async (body, param, message) => {
    const answer = await server.request('PATCH', `/v1/master/keys/${ID.ownerKey}`, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });
});

describe('GET /v1/master/keys is refused for', () => {
  it.each([
    ['limit=0', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=201', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=99999999999999999999', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=1e2', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=', '/limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=1&limit=2', '/limit', 'The query parameter limit is given more than once.'],
    ['cursor=%ff', '/cursor', 'The cursor does not belong to this list.'],
    ['cursor=', '/cursor', 'The cursor does not belong to this list.'],
    ['cursor=a&cursor=b', '/cursor', 'The query parameter cursor is given more than once.'],
  ])('?%s', async (query, param, message) => {
    const answer = await server.request('GET', `/v1/master/keys?${query}`);
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it.each([['/v1/master/keys/%'], ['/v1/master/keys/%E0%A4%A'], ['/v1/master/members/%ff/iam']])(
    'the path %s',
    async (path) => {
      const answer = await server.request('GET', path);
      expect(await outcome(answer)).toEqual({
        status: 400,
        body: refused('invalid_request', 'The path of the request is not valid percent-encoding.'),
      });
    },
  );
});
