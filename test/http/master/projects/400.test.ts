import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/id.ts';
import { insertProject } from '../../../../src/store/tenants/tenants.ts';
import { ID, startMs } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const NAME = 'must be a text of 1 to 256 characters, not all of them blank.';
const SECONDS = 'must be a whole number from 10 to 31536000.';

describe.each([
  ['POST', '/v1/master/projects'],
  ['PATCH', `/v1/master/projects/${ID.project}`],
])('%s %s is refused for', (method, path) => {
  it.each([
    [{ name: '' }, '/name', `/name ("") ${NAME}`],
    [{ name: '  ' }, '/name', `/name ("  ") ${NAME}`],
    [{ name: 'x'.repeat(257) }, '/name', `/name ("${'x'.repeat(99)}…) ${NAME}`],
    [{ name: 'A', cacheDurationSeconds: 9 }, '/cacheDurationSeconds', `/cacheDurationSeconds (9) ${SECONDS}`],
    [
      { name: 'A', cacheDurationSeconds: 31_536_001 },
      '/cacheDurationSeconds',
      `/cacheDurationSeconds (31536001) ${SECONDS}`,
    ],
    [{ name: 'A', cacheDurationSeconds: 10.5 }, '/cacheDurationSeconds', `/cacheDurationSeconds (10.5) ${SECONDS}`],
    [{ name: 'A', cachingEnabled: 1 }, '/cachingEnabled', '/cachingEnabled (1) must be of type boolean.'],
    [{ name: 'A', id: ID.project }, '/id', `/id ("${ID.project}") is not a known field.`],
  ])('%j', async (body, param, message) => {
    expect(await outcome(server.request(method, path, { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});

it('a project needs a name, and a change something to change', async () => {
  expect(await outcome(server.request('POST', '/v1/master/projects', { body: {} }))).toEqual({
    status: 400,
    body: refused('invalid_request', '/name is missing.', '/name'),
  });
  expect(await outcome(server.request('PATCH', `/v1/master/projects/${ID.project}`, { body: {} }))).toEqual({
    status: 400,
    body: refused('invalid_request', 'The request body must hold at least one field.', ''),
  });
});

it('the last project stays', async () => {
  expect(await outcome(server.request('DELETE', `/v1/master/projects/${ID.project}`))).toEqual({
    status: 400,
    body: refused('invalid_request', 'The last project of an organization cannot be deleted.'),
  });
  expect((await server.request('GET', `/v1/master/projects/${ID.project}`)).status).toBe(200);
});

it('an organization has at most 100 projects', async () => {
  await server.store.write((db) => {
    for (let made = 1; made < 100; made++) {
      insertProject(db, { id: newId('proj'), organizationId: ID.organization, name: 'Another' }, startMs);
    }
  });
  expect(await outcome(server.request('POST', '/v1/master/projects', { body: { name: 'One more' } }))).toEqual({
    status: 400,
    body: refused('invalid_request', 'An organization has at most 100 projects.'),
  });
});
