import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey } from '../../src/admin/keys/keys.ts';
import { allowApplication } from '../../src/admin/keys/oauth-grants.ts';
import { hashSecret } from '../../src/domain/id.ts';
import type { KeyAnswer, KeyList } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { insertProject } from '../../src/store/tenants/tenants.ts';
import { type CommandLine, createCommandLine, jsonOf, type Outcome } from './command-line.ts';

const validateKeyAnswer = validator('KeyAnswer');
const validateKeyList = validator('KeyList');

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

function answerOf(outcome: Outcome): KeyAnswer['key'] {
  const answer = jsonOf(outcome);
  if (!validateKeyAnswer(answer)) throw new Error(outcome.stdout);
  return answer.key;
}

async function listed(): Promise<KeyList['keys']> {
  const list = jsonOf(await portcullis.run('keys', 'list', '--json'));
  if (!validateKeyList(list)) throw new Error('not a list of keys');
  return list.keys;
}

const credentialOf = (token = '') => portcullis.store.findKeyByHash(hashSecret(token, portcullis.secrets.peppers[0]));

describe('portcullis keys', () => {
  it('takes a key through its life, by description, while a server holds the database', async () => {
    const limits = ['--limit', '25', '--period-limit', '0.50', '--period', '2 weeks'];
    const made = answerOf(
      await portcullis.run('keys', 'create', '--description', 'CI', '--ttl', '7days', ...limits, '--json'),
    );
    expect(made).toMatchObject({
      description: 'CI',
      projectId: portcullis.first.projectId,
      state: 'active',
      usageLimit: '25',
      periodUsageLimit: '0.5',
      periodUsageDurationValue: 2,
      periodUsageDurationUnit: 'week',
    });
    expect(Date.parse(made.expiresAt ?? '') - Date.parse(made.createdAt)).toBe(7 * 86_400_000);
    expect(await credentialOf(made.token)).toMatchObject({ keyId: made.id, memberRole: 'owner' });

    expect(answerOf(await portcullis.run('keys', 'disable', 'CI', '--json')).state).toBe('disabled');
    expect((await credentialOf(made.token))?.disabledAt).not.toBeNull();
    expect(answerOf(await portcullis.run('keys', 'enable', made.maskedToken ?? '', '--json')).state).toBe('active');

    const update = ['--description', 'Builds', '--limit', 'none', '--period-limit', '0', '--tags', 'ci', 'team:b'];
    expect(answerOf(await portcullis.run('keys', 'update', made.id, ...update, '--json'))).toMatchObject({
      description: 'Builds',
      usageLimit: null,
      periodUsageLimit: '0',
      state: 'limit_reached',
      tags: ['ci', 'team:b'],
    });
    expect((await portcullis.run('keys', 'list', '--wide')).stdout).toMatch(/ TAGS\n.*\n?.* ci, team:b\n/);
    const perMinute = ['--rpm', '60', '--tpm', '100000'];
    expect((await portcullis.run('keys', 'update', made.id, ...perMinute)).stdout).toMatch(
      / PER MINUTE +TAGS\n.* 60 calls, 100000 tokens +ci, team:b\n$/,
    );
    expect(await credentialOf(made.token)).toMatchObject({
      rates: [{ scope: 'key', subjectId: made.id, requests: 60, tokens: 100_000 }],
    });
    expect(await portcullis.run('keys', 'update', made.id, '--rpm', '9999999999')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('must be null or a whole number from 1 to 1000000000'),
    });
    expect(await portcullis.run('keys', 'update', made.id, '--rpm', 'none', '--tpm', 'none')).toMatchObject({
      code: 0,
    });
    const untagged = await portcullis.run('keys', 'update', made.id, '--tags', 'none', '--json');
    expect(answerOf(untagged)).toMatchObject({ tags: [] });

    const rolled = answerOf(await portcullis.run('keys', 'roll', 'Builds', '--json'));
    expect(await credentialOf(made.token)).toBeUndefined();
    expect(await credentialOf(rolled.token)).toMatchObject({ keyId: made.id });

    const again = await portcullis.run('keys', 'roll', 'Builds', '--overlap', '1h');
    const [, token = '', ends = ''] =
      /\n {2}(pcl_\w+)\n\nThis token is shown once, now\. Keep it\.\nThe old one is accepted too until (\S+)\.\n$/.exec(
        again.stdout,
      ) ?? [];
    expect(await credentialOf(token)).toMatchObject({ keyId: made.id, secretEndsAt: null });
    expect(await credentialOf(rolled.token)).toMatchObject({ keyId: made.id, secretEndsAt: Date.parse(ends) });
    expect((await portcullis.run('keys', 'roll', 'Builds', '--overlap', '8days')).stderr).toBe(
      'portcullis: --overlap: An overlap is at most 7 days.\n',
    );

    expect((await listed()).map(({ description }) => description)).toEqual(['Builds', 'First gateway key']);
    expect(jsonOf(await portcullis.run('keys', 'delete', 'Builds', '--json'))).toEqual({ id: made.id, deleted: true });
    expect((await listed()).map(({ description }) => description)).toEqual(['First gateway key']);
  });

  it('says which applications end with the old token of a rolled key, and which go on', async () => {
    const made = answerOf(await portcullis.run('keys', 'create', '--description', 'Apps', '--json'));
    const person = {
      kind: 'person',
      organizationId: portcullis.first.organizationId,
      memberId: made.createdBy ?? '',
    } as const;
    const allow = (id: string, clientName: string, secretEndsAt?: null) =>
      portcullis.store.write((db, now) => {
        const origin = secretEndsAt === undefined ? {} : { secretEndsAt };
        return allowApplication(db, person, { id, keyId: made.id, clientId: id, clientName, ...origin }, now);
      });
    await allow('grant-1', 'Nightly', null);
    await allow('grant-2', 'Editor');
    const later = await portcullis.run('keys', 'roll', 'Apps', '--overlap', '1h');
    expect(later.stdout).toContain(
      'The application Nightly ends with the old token: register it again.\n' +
        'The application Editor goes on. To end it, roll with --end-applications all.\n',
    );
    const all = await portcullis.run('keys', 'roll', 'Apps', '--end-applications', 'all', '--json');
    expect(jsonOf(all)).toMatchObject({
      applications: { ended: [{ clientName: 'Nightly' }, { clientName: 'Editor' }], kept: [] },
    });
    expect(jsonOf(await portcullis.run('keys', 'roll', 'Apps', '--json'))).toMatchObject({
      applications: { ended: [], kept: [] },
    });
    await portcullis.run('keys', 'delete', 'Apps');
  });

  it('reads without JSON as an aligned table, uncoloured where it is not a terminal', async () => {
    const [key] = await listed();
    const { code, stdout } = await portcullis.run('keys', 'list');
    const id = key?.id ?? '';
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        `DESCRIPTION        ${'ID'.padEnd(36)}  OWNER            STATE   USD SPENT  USD LIMIT\n` +
        `First gateway key  ${id}  owner@localhost  active  0          -\n`,
    });
  });

  it('refuses a description that would steer the terminal', async () => {
    expect(await portcullis.run('keys', 'create', '--description', 'a\u001b[2Jb')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'portcullis: --description holds U+001B: control characters and characters that cannot be seen are not allowed.\n',
    });
  });

  it('shows the token of a new key once, and nothing else but its id', async () => {
    const { code, stdout, stderr } = await portcullis.run('keys', 'create', '--description', 'Shown');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^key_[0-9a-f]{32}\n\n {2}pcl_[0-9A-Za-z]{46}\n\nThis token is shown once, now\. Keep it\.\n$/,
    );
    expect((await portcullis.run('keys', 'delete', 'Shown')).stdout).toBe(`Deleted ${stdout.slice(0, 36)}.\n`);
  });

  it('hashes the token under the pepper of the environment, if there is one, as the server does', async () => {
    const fresh = 'ab'.repeat(32);
    const PEPPER = `${fresh},${portcullis.secrets.peppers[0].key.toString('hex')}`;
    const made = answerOf(
      await portcullis.runWith({ PEPPER }, 'keys', 'create', '--description', 'Peppered', '--json'),
    );
    const hash = hashSecret(made.token ?? '', { id: 'given', key: Buffer.from(fresh, 'hex') });
    expect(await portcullis.store.findKeyByHash(hash)).toMatchObject({ keyId: made.id });
    expect((await portcullis.runWith({ PEPPER }, 'keys', 'delete', made.id)).code).toBe(0);
  });

  it.each([
    [2, ['create', '--limit', 'much'], '--limit ("much") must be "none" or an amount in USD'],
    [
      2,
      ['create', '--period-limit', '1', '--period', '13months'],
      '--period: A window of unit month must be 1 to 12 long.',
    ],
    [2, ['create', '--ttl', '4000days'], '--ttl: A time to live must be at least 1 minute and at most 3650 days.'],
    [1, ['create', '--owner', 'nobody@example.com'], 'There is no member with the id or e-mail "nobody@example.com".'],
    [1, ['create', '--project', 'None'], 'There is no project "None"; there are: proj_'],
    [1, ['disable', 'None'], 'There is no key with the id, masked token or description "None".'],
    [1, ['enable', `key_${'0'.repeat(32)}`], 'There is no such key.'],
    [2, ['update', 'First gateway key'], 'Say what to change: --help lists the options.'],
    [1, ['reactivate', 'First gateway key', '--ttl', '1day'], 'Only an expired key can be reactivated.'],
    [1, ['list', '--org', 'org_none'], 'There is no organization org_none; there are: org_'],
  ])('exits with %i and one line for %j', async (status, args, message) => {
    const { code, stdout, stderr } = await portcullis.run('keys', ...args);
    expect({ code, stdout, lines: stderr.match(/\n/g)?.length }).toEqual({ code: status, stdout: '', lines: 1 });
    expect(stderr).toContain(`portcullis: ${message}`);
  });

  it('tells keys of one description apart', async () => {
    const [first, second] = [
      answerOf(await portcullis.run('keys', 'create', '--description', 'Twin', '--json')),
      answerOf(await portcullis.run('keys', 'create', '--description', 'Twin', '--json')),
    ];
    const meant = [second, first].map(({ id, maskedToken }) => `${id} (${maskedToken}, owner@localhost)`);
    expect(await portcullis.run('keys', 'disable', 'Twin')).toEqual({
      code: 1,
      stdout: '',
      stderr: `portcullis: "Twin" matches several keys: ${meant.join(', ')}.\n`,
    });
    for (const { id } of [first, second]) await portcullis.run('keys', 'delete', id);
  });

  it('waits for the transaction of another process to end', async () => {
    const { connection } = await portcullis.store.read((db) => db);
    connection.exec('BEGIN IMMEDIATE');
    const disabling = portcullis.run('keys', 'disable', 'First gateway key', '--json');
    await pause(1500);
    connection.exec('COMMIT');
    expect(answerOf(await disabling).state).toBe('disabled');
  });

  it('asks for the project where there are several', async () => {
    const { organizationId } = portcullis.first;
    const second = { id: `proj_${'f'.repeat(32)}`, organizationId, name: 'Second' };
    await portcullis.store.write((db, now) => insertProject(db, second, now));
    const { code, stderr } = await portcullis.run('keys', 'create');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `portcullis: Name the project with --project: ${second.id} (Second), ${portcullis.first.projectId} (Default).\n`,
    });
    const made = answerOf(
      await portcullis.run('keys', 'create', '--project', 'Second', '--description', 'Second', '--json'),
    );
    expect(made.projectId).toBe(second.id);
    const { stdout } = await portcullis.run('keys', 'list', '--wide');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[6])).toEqual([
      'PROJECT',
      'Second',
      'Default',
      undefined,
    ]);

    const twin = { id: `proj_${'e'.repeat(32)}`, organizationId, name: 'Second' };
    await portcullis.store.write((db, now) => insertProject(db, twin, now));
    expect(await portcullis.run('keys', 'list', '--project', 'Second')).toMatchObject({
      code: 1,
      stderr: `portcullis: "Second" matches several projects: ${second.id}, ${twin.id}.\n`,
    });
  });
});

describe('portcullis keys create', () => {
  let portcullis: CommandLine;
  beforeAll(async () => {
    portcullis = await createCommandLine();
  });
  afterAll(() => portcullis.close());

  it('warns where a new key limits one key of a person who has no budget, and where it has neither name nor limit', async () => {
    await portcullis.run('members', 'add', 'anna@example.com');
    const limits = ['--limit', '25', '--period-limit', '10', '--period', 'calendar-month'];
    const create = (...args: string[]) => portcullis.run('keys', 'create', ...args);
    expect((await create('--owner', 'anna@example.com', ...limits)).stderr).toBe(
      'portcullis: warning: This limit is of one key, and anna@example.com has no budget over all of theirs: portcullis budgets set --member anna@example.com --limit 25 --period-limit 10 --period calendar-month\n',
    );
    await portcullis.run('budgets', 'set', '--member', 'anna@example.com', '--limit', '50');
    expect((await create('--owner', 'anna@example.com', ...limits)).stderr).toBe('');
    expect((await create('--json')).stderr).toMatch(
      /^portcullis: warning: This key has no description and no limit: portcullis keys update key_\w+ --description <text> --limit <usd>\n$/,
    );
    expect((await create('--description', 'Named')).stderr).toBe('');
  });
});

describe('portcullis keys roll', () => {
  let portcullis: CommandLine;
  beforeAll(async () => {
    portcullis = await createCommandLine();
    await portcullis.store.write((db) => {
      const actor = { kind: 'cli', organizationId: portcullis.first.organizationId } as const;
      const write = { now: Date.now(), pepper: portcullis.secrets.peppers[0] };
      const { projectId } = portcullis.first;
      const createdBy = db.connection.prepare<[], string>('SELECT id FROM members').pluck().get();
      for (let number = 1; number <= 24; number += 1) {
        createKey(db, actor, { projectId, createdBy, description: `Key ${number}` }, write);
      }
    });
  });
  afterAll(() => portcullis.close());

  const hashes = () =>
    portcullis.store.read((db) =>
      db.connection.prepare<[], string>("SELECT secretHash FROM keys WHERE kind = 'regular' ORDER BY id").pluck().all(),
    );
  const hashOf = (token: string) => hashSecret(token, portcullis.secrets.peppers[0]);

  it('gives every key of a member another token, in a new file that only its owner can read', async () => {
    const file = path.join(portcullis.folder, 'tokens.jsonl');
    const before = await hashes();

    const all = ['keys', 'roll', '--owner', 'owner@localhost', '--output', file];
    expect(await portcullis.run(...all, '--json')).toEqual({ code: 0, stdout: '', stderr: '' });

    const rolled = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => Object(JSON.parse(line)));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(rolled).toHaveLength(25);
    expect(rolled[1]).toEqual({
      id: expect.stringMatching(/^key_/),
      description: 'Key 1',
      owner: 'owner@localhost',
      token: expect.stringMatching(/^pcl_/),
    });
    const after = await hashes();
    expect(rolled.map(({ token }) => hashOf(token))).toEqual(after);
    expect(after.filter((hash) => before.includes(hash))).toEqual([]);

    const again = await portcullis.run(...all);
    expect([again.code, again.stderr]).toEqual([2, `portcullis: ${file}: this exists already.\n`]);
    expect(await hashes()).toEqual(after);
  });

  it('prints the tokens of all keys as a table, and accepts the old ones for as long as it is asked to', async () => {
    const old = await hashes();
    const { code, stdout } = await portcullis.run('keys', 'roll', '--all', '--overlap', '1h');
    const [titles, ...rows] = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    expect([code, titles, rows.length]).toEqual([0, ['ID', 'DESCRIPTION', 'OWNER', 'TOKEN'], 25]);
    expect(rows.map((cells) => hashOf(cells.at(-1) ?? ''))).toEqual(await hashes());
    for (const hash of old) {
      expect((await portcullis.store.findKeyByHash(hash))?.secretEndsAt).toBeGreaterThan(Date.now() + 3_500_000);
    }
  });

  it.each([
    [[], 'Name a key, or choose --all, --owner or --project.'],
    [['Key 1', '--all'], 'Name a key, or choose --all, --owner or --project.'],
    [['Key 1', '--output', 'x'], '--output goes with --all, --owner or --project.'],
    [['--all', '--overlap', '8days'], 'An overlap is at most 7 days.'],
    [['--owner', 'nobody@example.com'], 'There is no member'],
  ])('changes nothing for %j', async (args, words) => {
    const before = await hashes();
    const { code, stderr } = await portcullis.run('keys', 'roll', ...args);
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(words)]);
    expect(await hashes()).toEqual(before);
  });
});

describe('portcullis keys update --ttl', () => {
  let portcullis: CommandLine;
  beforeAll(async () => {
    portcullis = await createCommandLine();
  });
  afterAll(() => portcullis.close());

  const update = async (...args: string[]) =>
    answerOf(await portcullis.run('keys', 'update', 'First gateway key', ...args, '--json'));

  it('gives a key another end, or none, next to other changes', async () => {
    const ended = await update('--ttl', '7days', '--limit', '5');
    expect(Date.parse(ended.expiresAt ?? '') - Date.parse(ended.updatedAt)).toBe(7 * 86_400_000);
    expect(ended.usageLimit).toBe('5');
    expect((await update('--ttl', 'none')).expiresAt).toBeNull();
  });

  it('does not bring back a key that has expired', async () => {
    await update('--ttl', '7days');
    await portcullis.store.write((db) => db.connection.exec('UPDATE keys SET expiresAt = 1'));
    const { code, stderr } = await portcullis.run('keys', 'update', 'First gateway key', '--ttl', '7days');
    expect([code, stderr]).toEqual([2, expect.stringContaining('reactivate it with a new expiration')]);
  });
});
