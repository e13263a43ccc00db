import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
let path: string;

beforeAll(async () => {
  server = await startManagementServer();
  const made = await server.request('POST', '/v1/master/groups', { body: { name: 'taken' } });
  path = `/v1/master/groups/${JSON.parse(made.text).group.id}`;
});
afterAll(() => server.close());

const nameFault = (name: string) =>
  `/name (${JSON.stringify(name)}) must be 1 to 64 letters, digits and . _ -, and begin with a letter or digit.`;

describe.each(['POST', 'PATCH'])('%s', (method) => {
  const target = (): string => (method === 'POST' ? '/v1/master/groups' : path);

  it.each([
    ['a name with a blank', { name: 'two words' }, '/name', nameFault('two words')],
    ['a name that is too long', { name: 'a'.repeat(65) }, '/name', nameFault('a'.repeat(65))],
    ['an empty name', { name: '' }, '/name', nameFault('')],
    ['a field that is not known', { name: 'free', owner: 'me' }, '/owner', '/owner ("me") is not a known field.'],
  ])('refuses %s', async (_, body, param, message) => {
    expect(await outcome(server.request(method, target(), { body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });
});

it('refuses a name that another group has', async () => {
  const other = await server.request('POST', '/v1/master/groups', { body: { name: 'other' } });
  const taken = { status: 400, body: refused('invalid_request', 'There is a group "taken" already.', '/name') };
  expect(await outcome(server.request('POST', '/v1/master/groups', { body: { name: 'taken' } }))).toEqual(taken);
  const target = `/v1/master/groups/${JSON.parse(other.text).group.id}`;
  expect(await outcome(server.request('PATCH', target, { body: { name: 'taken' } }))).toEqual(taken);
  expect((await server.request('PATCH', path, { body: { name: 'taken' } })).status).toBe(200);
});

it.each([
  [{}, 'The request body must hold at least one field.', ''],
  [{ failOnNewAccess: true }, 'The request body must hold at least one field of the group.', ''],
])('refuses the change %j', async (body, message, param) => {
  expect(await outcome(server.request('PATCH', path, { body }))).toEqual({
    status: 400,
    body: refused('invalid_request', message, param),
  });
});

it('refuses to add and remove one at once, however they are named', async () => {
  const body = { addMembers: [ID.developer], removeMembers: ['developer@example.com'] };
  expect(await outcome(server.request('PATCH', path, { body }))).toEqual({
    status: 400,
    body: refused('invalid_request', 'developer@example.com cannot be added and removed at once.'),
  });
});

it('refuses a flag of a deletion that is none', async () => {
  expect((await server.request('DELETE', `${path}?failOnNewAccess=perhaps`)).status).toBe(400);
});

it('lets a key be in twenty groups, and no more', async () => {
  const groups: string[] = [];
  for (let count = 0; count < 21; count += 1) {
    const made = await server.request('POST', '/v1/master/groups', { body: { name: `g${count}` } });
    groups.push(`/v1/master/groups/${JSON.parse(made.text).group.id}`);
  }
  const answers: number[] = [];
  for (const group of groups) {
    answers.push((await server.request('PATCH', group, { body: { addKeys: [ID.ownerKey] } })).status);
  }
  expect(answers).toEqual([...new Array(20).fill(200), 400]);
  const [first = '', last = ''] = [groups[0], groups[20]];
  expect(await outcome(server.request('PATCH', last, { body: { addKeys: [ID.ownerKey] } }))).toEqual({
    status: 400,
    body: refused('invalid_request', "The owner's is in 20 groups already, which is the most."),
  });
  await server.request('DELETE', first);
  expect((await server.request('PATCH', last, { body: { addKeys: [ID.ownerKey] } })).status).toBe(200);
});
