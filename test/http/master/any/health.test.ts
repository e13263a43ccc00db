import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policyInForce } from '../../../support/policy-bundles.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
let reason: string | undefined;

beforeAll(async () => {
  server = await startManagementServer(async () => reason);
});
afterAll(() => server.close());

const statusWithHost = (host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request(`${server.origin}/health`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });

describe('the management listener', () => {
  it('says that it lives and whether it is ready, without a key', async () => {
    expect(await outcome(server.request('GET', '/health', { token: null }))).toEqual({
      status: 200,
      body: { status: 'ok' },
    });
    expect(await outcome(server.request('GET', '/ready', { token: null }))).toEqual({
      status: 200,
      body: {
        status: 'ready',
        policy: {
          digest: policyInForce.bundle.digest.slice(0, 12),
          revision: null,
          activatedAt: '2026-11-24T00:00:00.000Z',
        },
      },
    });
    reason = 'stopping';
    expect(await outcome(server.request('GET', '/ready', { token: null }))).toEqual({
      status: 503,
      body: { status: 'not_ready', reason: 'stopping' },
    });
  });

  it('is not reached under a foreign name', async () => {
    expect(await statusWithHost('rebound.example')).toBe(421);
    expect(await statusWithHost('localhost')).toBe(200);
  });
});
