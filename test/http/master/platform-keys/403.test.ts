import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rollKey } from '../../../../src/admin/keys/keys.ts';
import { cli, ID, pepper, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

describe('a platform key', () => {
  it('is not made by a developer for others', async () => {
    const sent = { token: server.tokens.developer, body: { projectId: ID.project, createdBy: ID.owner } };
    expect(await outcome(server.request('POST', '/v1/master/platform-keys', sent))).toEqual({
      status: 403,
      body: refused('permission_denied', 'Developers can only make keys for themselves.'),
    });
  });

  it('cannot be limited, given rules, or rolled', async () => {
    const key = `/v1/master/keys/${ID.platformKey}`;
    expect(await outcome(server.request('PATCH', key, { body: { usageLimit: '1' } }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'A platform key cannot be limited.'),
    });
    const rule = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };
    expect(await outcome(server.request('POST', `${key}/iam`, { body: rule }))).toEqual({
      status: 403,
      body: refused('permission_denied', 'A platform key cannot be given rules.'),
    });
    const roll = server.store.write((db) => rollKey(db, cli, ID.platformKey, { now: startMs, pepper }));
    await expect(roll).rejects.toMatchObject({ status: 403, message: 'Only a regular gateway key can be rolled.' });
  });

  it('takes no changes at its own path', async () => {
    const answer = await server.request('PATCH', `/v1/master/platform-keys/${ID.platformKey}`, { body: {} });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD, OPTIONS']);
  });
});
