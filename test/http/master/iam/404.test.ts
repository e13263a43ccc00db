import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const body = { ruleType: 'deny_models', ruleValue: { models: ['*'] } };

describe('…/iam of what the organization does not have is not found:', () => {
  it.each([
    [`keys/${ID.foreignKey}`, 'There is no such key.'],
    [`keys/${ID.absent}`, 'There is no such key.'],
    [`members/${ID.foreigner}`, 'There is no such member.'],
    ['members/foreigner%40example.com', 'There is no such member.'],
  ])('%s', async (owner, message) => {
    const notFound = { status: 404, body: refused('not_found', message) };
    const path = `/v1/master/${owner}/iam`;
    expect(await outcome(server.request('GET', path))).toEqual(notFound);
    expect(await outcome(server.request('POST', path, { body }))).toEqual(notFound);
    expect(await outcome(server.request('DELETE', `${path}/${ID.absentRule}`))).toEqual(notFound);
  });
});

describe('…/iam/{ruleId}', () => {
  it('is not found under another owner', async () => {
    const made = await server.request('POST', `/v1/master/keys/${ID.ownerKey}/iam`, { body });
    const { id } = JSON.parse(made.text).rule;
    for (const owner of [`keys/${ID.developerKey}`, 'organization', `members/${ID.owner}`]) {
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const sent = method === 'PATCH' ? { body: { mode: 'report' } } : {};
        expect(await outcome(server.request(method, `/v1/master/${owner}/iam/${id}`, sent))).toEqual({
          status: 404,
          body: refused('not_found', 'There is no such rule.'),
        });
      }
    }
  });
});
