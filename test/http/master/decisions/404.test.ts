import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { storeDenied } from './logged.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const NO_CALL = refused('not_found', 'There is no such call or decision.');

it.each(['dec_1', `dec_${'f'.repeat(32)}`, `dec_${'0'.repeat(32)}`, `req_${'7'.repeat(32)}`])(
  'of an id that nothing has: %s',
  async (id) => {
    for (const path of ['calls', 'decisions']) {
      expect(await outcome(server.request('GET', `/v1/master/${path}/${id}`))).toEqual({ status: 404, body: NO_CALL });
    }
  },
);

it("of another's call, for a developer, and of their key", async () => {
  const rule = `rule_${'1'.repeat(32)}`;
  const ids = await storeDenied(server, startMs, { rule, keyId: ID.ownerKey, memberId: ID.owner });
  const { developer: token } = server.tokens;
  for (const path of [`calls/${ids[0]}`, `decisions/${ids[1]}`]) {
    expect(await outcome(server.request('GET', `/v1/master/${path}`, { token }))).toEqual({
      status: 404,
      body: NO_CALL,
    });
    expect((await server.request('GET', `/v1/master/${path}`)).status).toBe(200);
  }
  expect(await outcome(server.request('GET', `/v1/master/decisions?keyId=${ID.ownerKey}`, { token }))).toEqual({
    status: 404,
    body: refused('not_found', 'There is no such key.'),
  });
});
