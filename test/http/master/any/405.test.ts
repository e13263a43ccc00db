import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('the management listener', () => {
  it('answers another method with those that the path takes', async () => {
    const answer = await server.request('PUT', '/v1/master/keys');
    expect(await outcome(answer)).toEqual({
      status: 405,
      body: refused('method_not_allowed', '/v1/master/keys does not take PUT.'),
    });
    expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
  });

  it('answers an unknown path with 404', async () => {
    expect(await outcome(server.request('GET', '/v1/master/nothing'))).toEqual({
      status: 404,
      body: refused('not_found', 'There is nothing at /v1/master/nothing.'),
    });
  });
});
