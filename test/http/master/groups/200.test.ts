import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validator } from '../../../../src/lib/schemas.ts';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

const validateGroupChangeAnswer = validator('GroupChangeAnswer');

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const GROUPS = '/v1/master/groups';
const NOTHING = { count: 0, cells: [] };

async function make(name: string): Promise<string> {
  const { text, status } = await server.request('POST', GROUPS, { body: { name } });
  if (status !== 201) throw new Error(text);
  return `${GROUPS}/${JSON.parse(text).group.id}`;
}

async function changed(group: string, body: object) {
  const { text, status } = await server.request('PATCH', group, { body });
  const answer: unknown = JSON.parse(text);
  if (status !== 200 || !validateGroupChangeAnswer(answer)) throw new Error(text);
  return answer;
}

const deny = (group: string, models: string[]) =>
  server.request('POST', `${group}/iam`, { body: { ruleType: 'deny_models', ruleValue: { models } } });

const DEVELOPER = { id: ID.developer, email: 'developer@example.com' };
const OWNER_KEY = { id: ID.ownerKey, description: "The owner's" };

it('creates, lists, shows, changes and deletes a group', async () => {
  const made = await server.request('POST', GROUPS, { body: { name: 'contractors', description: 'Not employed' } });
  const summary = {
    id: 'grp_new',
    createdAt: START,
    updatedAt: START,
    name: 'contractors',
    description: 'Not employed',
  };
  const group = { ...summary, members: [], keys: [] };
  expect(await outcome(made)).toEqual({ status: 201, body: { group } });
  const path = `${GROUPS}/${JSON.parse(made.text).group.id}`;
  expect(await outcome(server.request('GET', GROUPS))).toEqual({
    status: 200,
    body: { groups: [summary], nextCursor: null },
  });
  expect(await outcome(server.request('GET', path))).toEqual({ status: 200, body: { group } });

  const put = await server.request('PATCH', path, {
    body: { addMembers: ['Developer@example.com', ID.developer], addKeys: [ID.ownerKey] },
  });
  const full = { ...group, members: [DEVELOPER], keys: [OWNER_KEY] };
  expect(await outcome(put)).toEqual({ status: 200, body: { group: full, widens: NOTHING } });

  const renamed = await server.request('PATCH', path, { body: { name: 'externals', description: null } });
  expect(await outcome(renamed)).toEqual({
    status: 200,
    body: { group: { ...full, name: 'externals', description: null }, widens: NOTHING },
  });

  const taken = await server.request('PATCH', path, { body: { removeKeys: [ID.ownerKey, ID.developerKey] } });
  expect(await outcome(taken)).toEqual({
    status: 200,
    body: { group: { ...full, name: 'externals', description: null, keys: [] }, widens: NOTHING },
  });

  const deleted = await server.request('DELETE', path);
  expect(await outcome(deleted)).toEqual({ status: 200, body: { id: 'grp_new', deleted: true, widens: NOTHING } });
  expect((await server.request('GET', path)).status).toBe(404);
  expect((await server.request('GET', GROUPS)).body).toEqual({ groups: [], nextCursor: null });
});

it('gives the name of a deleted group to another one', async () => {
  const path = await make('reused');
  await server.request('DELETE', path);
  await server.request('DELETE', await make('reused'));
});

it('leaves those out who are gone', async () => {
  const path = await make('leavers');
  const { text } = await server.request('POST', '/v1/master/keys', {
    body: { projectId: ID.project, createdBy: ID.owner },
  });
  const { id } = JSON.parse(text).key;
  expect((await changed(path, { addKeys: [id] })).group.keys).toHaveLength(1);
  await server.request('DELETE', `/v1/master/keys/${id}`);
  expect(JSON.parse((await server.request('GET', path)).text).group.keys).toEqual([]);
  await server.request('DELETE', path);
});

describe('what a change newly permits', () => {
  it('names those who leave a group, and nobody who joins one', async () => {
    const path = await make('limited');
    await deny(path, ['sandbox-paid']);
    expect((await changed(path, { addKeys: [ID.ownerKey], addMembers: [ID.developer] })).widens).toEqual(NOTHING);
    const { widens } = await changed(path, { removeKeys: [ID.ownerKey] });
    const holder = { scope: 'key', id: ID.ownerKey, name: "The owner's" };
    const everywhere = { addresses: ['0.0.0.0/0', '::/0', 'unknown'], moreAddresses: 0 };
    expect(widens).toEqual({
      count: 1,
      cells: [{ holder, mapping: 'sandbox/sandbox-paid', credential: true, ...everywhere }],
    });
    const { text } = await server.request('DELETE', path);
    const holders = JSON.parse(text).widens.cells.map((cell: { holder: { id: string } }) => cell.holder.id);
    expect(holders.toSorted()).toEqual([ID.developerKey, ID.developer].toSorted());
  });

  it('is nothing where another group denies the same', async () => {
    const [first, second] = [await make('first'), await make('second')];
    for (const path of [first, second]) {
      await deny(path, ['sandbox-paid']);
      await changed(path, { addKeys: [ID.ownerKey] });
    }
    expect((await changed(first, { removeKeys: [ID.ownerKey] })).widens).toEqual(NOTHING);
    for (const path of [first, second]) await server.request('DELETE', path);
  });

  it('names those in the group when a rule of it is changed', async () => {
    const path = await make('ruled');
    await changed(path, { addKeys: [ID.ownerKey] });
    const { text } = await deny(path, ['sandbox-paid']);
    const rule = `${path}/iam/${JSON.parse(text).rule.id}`;
    const { widens } = JSON.parse((await server.request('PATCH', rule, { body: { status: 'inactive' } })).text);
    expect(widens).toMatchObject({
      count: 1,
      cells: [{ holder: { id: ID.ownerKey }, mapping: 'sandbox/sandbox-paid' }],
    });
    await server.request('DELETE', path);
  });
});
