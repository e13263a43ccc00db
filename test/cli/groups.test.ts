import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const groups = (...args: string[]) => portcullis.run('groups', ...args);
const KEY = 'First gateway key';
const OWNER = 'owner@localhost';
const NOTHING = { count: 0, cells: [] };

describe('portcullis groups', () => {
  it('creates, lists and shows a group with rules, and puts members and keys into it', async () => {
    const made = Object(jsonOf(await groups('create', 'contractors', '--description', 'Not employed', '--json')));
    const { id } = made.group;
    expect(made.group).toMatchObject({ name: 'contractors', description: 'Not employed', members: [], keys: [] });
    const added = await portcullis.run(
      'rules',
      'add',
      '--group',
      'contractors',
      'deny_models',
      'sandbox-paid',
      '--json',
    );
    expect(Object(jsonOf(added)).rule).toMatchObject({ groupId: id, apiKeyId: null, ownerName: 'contractors' });

    const put = Object(jsonOf(await groups('add', 'contractors', '--member', OWNER, '--key', KEY, '--json')));
    expect([put.group.members.length, put.group.keys.length, put.widens]).toEqual([1, 1, NOTHING]);
    expect((await groups('show', 'contractors')).stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      [`${id} (contractors): Not employed`],
      [''],
      ['IN IT', 'ID', 'NAME'],
      ['member', put.group.members[0].id, OWNER],
      ['key', put.group.keys[0].id, KEY],
      [''],
    ]);
    const listed = (await groups('list')).stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(listed).toEqual([
      ['NAME', 'ID', 'MEMBERS', 'KEYS', 'DESCRIPTION'],
      ['contractors', id, '1', '1', 'Not employed'],
      [''],
    ]);
    expect(jsonOf(await groups('list', '--json'))).toEqual({ groups: [put.group], nextCursor: null });
    expect((await portcullis.run('rules', 'list')).stdout).toMatch(/^rule_\w+ +contractors /m);
    expect((await portcullis.run('access', KEY, '--denied')).stdout).toMatch(/ group contractors +deny_models /);
  });

  it('says what it newly permits when someone leaves, and when the group is deleted', async () => {
    const { id } = Object(jsonOf(await groups('show', 'contractors', '--json'))).group;
    expect((await groups('remove', 'contractors', '--key', KEY, '--fail-on-new-access')).stdout).toContain(
      'No new access.',
    );
    expect(await groups('remove', id, '--member', OWNER, '--fail-on-new-access')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^portcullis: The change is refused: it would newly permit sandbox\/sandbox-paid for /,
      ),
    });
    const renamed = await groups('update', 'contractors', '--name', 'externals', '--description', 'none');
    expect(renamed.stdout.split('\n')[0]).toBe(`${id} (externals)`);

    const { stdout } = await groups('delete', 'externals');
    expect(stdout).toContain(`Removed ${id}.\n2 accesses are new:\n`);
    expect((await groups('list')).stdout).toBe('There are no groups.\n');
    expect((await groups('show', 'externals')).stderr).toBe(
      'portcullis: There is no group with the id or name "externals".\n',
    );
  });

  it('refuses to remove who is not in it, naming them, and removes nobody', async () => {
    await groups('create', 'small');
    await groups('add', 'small', '--member', OWNER);
    const before = (await groups('show', 'small')).stdout;
    expect(await groups('remove', 'small', '--member', OWNER, '--key', KEY)).toEqual({
      code: 1,
      stdout: '',
      stderr: `portcullis: Not in the group "small": ${KEY}. "groups show small" lists who is in it.\n`,
    });
    expect((await groups('show', 'small')).stdout).toBe(before);
    await groups('remove', 'small', '--member', OWNER);
    expect((await groups('remove', 'small', '--key', KEY, '--member', OWNER)).stderr).toBe(
      `portcullis: Not in the group "small": ${OWNER}, ${KEY}. "groups show small" lists who is in it.\n`,
    );
    await groups('delete', 'small');
  });

  it('refuses what says nothing', async () => {
    await groups('create', 'empty');
    for (const [args, message] of [
      [['add', 'empty'], 'Name a member or a key: --member, --key.'],
      [['remove', 'empty'], 'Name a member or a key: --member, --key.'],
      [['update', 'empty'], 'Say what to change: --name, --description.'],
      [['create', 'two words'], ''],
    ] as const) {
      const { code, stderr } = await groups(...args);
      expect([code === 0, stderr.includes(message)]).toEqual([false, true]);
    }
    await groups('delete', 'empty');
  });
});

it('fixtures hold for live groups, and are exported and generated with them', async () => {
  await groups('create', 'team');
  await groups('add', 'team', '--member', OWNER);
  const rule = await portcullis.run('rules', 'add', '--group', 'team', 'allow_pricing', '--type', 'free', '--json');
  const folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  mkdirSync(path.join(folder, 'cases'));
  writeFileSync(
    path.join(folder, 'cases', 'team.yaml'),
    `name: The team has free models only
given:
  catalog: real
  groups: { team: { keys: ${KEY}, rules: { only-free: { allow_pricing: { pricingType: free } } } } }
  keys: { ${KEY}: {} }
requests: { model: [sandbox-free, sandbox-paid] }
expect:
  - { model: sandbox-free, permit: all }
  - { model: sandbox-paid, deny: group allow_pricing, rules: only-free }
`,
  );
  const live = await portcullis.run('policy', 'test', path.join(folder, 'cases'), '--database', portcullis.folder);
  expect([live.code, live.stdout]).toEqual([0, expect.stringContaining('1 fixture: 1 passed; 2 requests')]);

  const exported = path.join(folder, 'exported');
  await portcullis.run('policy', 'export', '--database', portcullis.folder, '--output', exported);
  const document = await portcullis.run(
    'policy',
    'test',
    path.join(folder, 'cases'),
    '--rules',
    path.join(exported, 'world.json'),
  );
  expect([document.code, document.stdout]).toEqual([0, expect.stringContaining('1 fixture: 1 passed; 2 requests')]);

  const output = path.join(folder, 'generated');
  await portcullis.run('policy', 'generate', '--key', KEY, '--output', output);
  const generated = await portcullis.run('policy', 'test', output);
  expect([generated.code, generated.stdout]).toEqual([0, expect.stringContaining(Object(jsonOf(rule)).rule.id)]);
  await groups('delete', 'team');
});
