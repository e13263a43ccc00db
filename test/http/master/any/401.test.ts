import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateSecret } from '../../../../src/domain/id.ts';
import { removeMember, updateMember } from '../../../../src/store/tenants/member-records.ts';
import { ID, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const invalid = { status: 401, body: refused('invalid_api_key', 'The master key is not valid.') };

const rulesOf = (path: string): [string, string][] => [
  ['GET', path],
  ['POST', path],
  ...['GET', 'PATCH', 'DELETE'].map((method): [string, string] => [method, `${path}/${ID.absentRule}`]),
];

const ROUTES: [string, string][] = [
  ['GET', '/v1/master/keys'],
  ['POST', '/v1/master/keys'],
  ['GET', `/v1/master/keys/${ID.ownerKey}`],
  ['PATCH', `/v1/master/keys/${ID.ownerKey}`],
  ['DELETE', `/v1/master/keys/${ID.ownerKey}`],
  ...rulesOf(`/v1/master/keys/${ID.ownerKey}/iam`),
  ...rulesOf('/v1/master/members/owner%40example.com/iam'),
  ...rulesOf('/v1/master/organization/iam'),
  ['GET', '/v1/master/projects'],
  ['GET', '/v1/master/members'],
  ['GET', '/v1/master/organization'],
  ['PATCH', '/v1/master/organization'],
  ...['master-keys', 'platform-keys'].flatMap((name): [string, string][] => [
    ['GET', `/v1/master/${name}`],
    ['POST', `/v1/master/${name}`],
    ['GET', `/v1/master/${name}/x`],
    ['DELETE', `/v1/master/${name}/x`],
  ]),
  ['PATCH', '/v1/master/master-keys/x'],
  ['GET', '/v1/master/audit'],
  ['GET', '/v1/master/usage'],
];

describe.each(ROUTES)('%s %s', (method, path) => {
  it('needs a master key, before it reads anything', async () => {
    const body = method === 'POST' || method === 'PATCH' ? 'not JSON' : undefined;
    expect(await outcome(server.request(method, path, { token: null, body }))).toEqual({
      status: 401,
      body: refused('invalid_api_key', 'No master key was given: send `Authorization: Bearer <master key>`.'),
    });
    expect(await outcome(server.request(method, path, { token: generateSecret('master'), body }))).toEqual(invalid);
  });
});

describe('a master key is not valid', () => {
  it('when it is an access token, or mistyped', async () => {
    const mistyped = `${server.tokens.owner.slice(0, -1)}${server.tokens.owner.endsWith('0') ? '1' : '0'}`;
    for (const token of ['an-access-token', mistyped, 'x'.repeat(8000)]) {
      expect(await outcome(server.request('GET', '/v1/master/keys', { token }))).toEqual(invalid);
    }
  });

  it('after its maker has left, and acts with the role that they have now', async () => {
    const token = server.tokens.admin;
    expect((await server.request('GET', '/v1/master/members', { token })).status).toBe(200);
    await server.store.write((db) => updateMember(db, ID.organization, ID.admin, { role: 'developer' }, startMs));
    expect((await server.request('GET', '/v1/master/members', { token })).status).toBe(403);
    await server.store.write((db) => removeMember(db, ID.organization, ID.admin, startMs));
    expect(await outcome(server.request('GET', '/v1/master/members', { token }))).toEqual(invalid);
  });
});
