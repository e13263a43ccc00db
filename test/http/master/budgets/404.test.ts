import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

it.each([
  [`members/${ID.foreigner}`, 'There is no such member.'],
  ['members/nobody@example.com', 'There is no such member.'],
  [`projects/${ID.otherProject}`, 'There is no such project.'],
])('there is no budget of %s', async (path, message) => {
  for (const [method, sent] of [
    ['GET', {}],
    ['PATCH', { body: { usageLimit: '5' } }],
  ] as const) {
    expect(await outcome(server.request(method, `/v1/master/${path}/budget`, sent))).toEqual({
      status: 404,
      body: refused('not_found', message),
    });
  }
});
