import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf, type Outcome } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const members = (...args: string[]) => portcullis.run('members', ...args);
const accept = (token: string, ...args: string[]) =>
  portcullis.runWithInput(`${token}\n`, 'members', 'accept', '--token-stdin', ...args);

/** The cells of a printed table. */
const cells = ({ stdout }: Outcome): string[][] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));

describe('portcullis members', () => {
  it('invites, accepts, lists, updates and removes', async () => {
    const invited = await members('invite', 'ada@example.com', '--role', 'admin', '--ttl', '2days');
    const [, id = '', token = ''] = /^(inv_\w+)\n\n {2}(pcli_\w+)\n/.exec(invited.stdout) ?? [];
    expect(invited).toMatchObject({ code: 0, stderr: '' });
    expect(invited.stdout).toContain('This token is shown once, now. Until ');
    expect(invited.stdout).toContain('\n  portcullis members accept --token-stdin\n');

    expect(cells(await members('invitations'))).toEqual([
      ['ID', 'E-MAIL', 'ROLE', 'STATUS', 'INVITED BY', 'TOKEN', 'EXPIRES'],
      [id, 'ada@example.com', 'admin', 'pending', '-', `${token.slice(0, 9)}…${token.slice(-4)}`, expect.any(String)],
    ]);

    const accepted = Object(jsonOf(await accept(token, '--name', 'Ada', '--json')));
    expect(accepted).toEqual({
      member: {
        id: expect.stringMatching(/^mem_/),
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
        email: 'ada@example.com',
        name: 'Ada',
        role: 'admin',
      },
    });
    expect(await accept(token)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no open invitation with this token.\n',
    });

    expect(cells(await members('list')).map((row) => row.slice(1, 4))).toEqual([
      ['E-MAIL', 'NAME', 'ROLE'],
      ['ada@example.com', 'Ada', 'admin'],
      ['owner@localhost', '-', 'owner'],
    ]);

    const updated = jsonOf(
      await members('update', 'ada@example.com', '--role', 'developer', '--name', 'none', '--json'),
    );
    expect(updated).toMatchObject({
      member: { ...accepted.member, name: null, role: 'developer', updatedAt: expect.any(String) },
    });

    expect(await members('remove', 'ada@example.com')).toEqual({
      code: 0,
      stdout: `Removed ${accepted.member.id}.\n`,
      stderr: '',
    });
    const listed = Object(jsonOf(await members('list', '--json')));
    expect([listed.members.length, listed.nextCursor]).toEqual([1, null]);
  });

  it('adds a member in one step', async () => {
    const added = Object(jsonOf(await members('add', 'Eve@example.com', '--role', 'admin', '--name', 'Eve', '--json')));
    expect(added).toEqual({
      member: {
        id: expect.stringMatching(/^mem_/),
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
        email: 'eve@example.com',
        name: 'Eve',
        role: 'admin',
      },
    });
    expect(await members('add', 'eve@example.com')).toMatchObject({
      code: 1,
      stderr: 'portcullis: /email: eve@example.com is a member already.\n',
    });
    expect(jsonOf(await portcullis.run('keys', 'create', '--owner', 'eve@example.com', '--json'))).toMatchObject({
      key: { createdBy: added.member.id },
    });
    expect(await members('remove', 'eve@example.com')).toMatchObject({ code: 0 });
  });

  it('revokes an invitation', async () => {
    const { invitation } = Object(jsonOf(await members('invite', 'bob@example.com', '--json')));
    expect(invitation).toMatchObject({ role: 'developer', status: 'pending', invitedBy: null });
    expect(await members('revoke', invitation.id)).toEqual({
      code: 0,
      stdout: `Revoked ${invitation.id}.\n`,
      stderr: '',
    });
    expect(await accept(invitation.token)).toMatchObject({ code: 1 });
    const { invitations } = Object(jsonOf(await members('invitations', '--json')));
    expect(invitations[0]).toMatchObject({ id: invitation.id, status: 'revoked' });
  });

  it('keeps the last owner', async () => {
    expect(await members('remove', 'owner@localhost')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: The last owner of an organization cannot be removed.\n',
    });
  });

  it('says what is wrong with a command', async () => {
    expect(await members('update', 'owner@localhost')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: Say what to change: --name, --role.\n',
    });
    expect((await members('invite', 'carl@example.com', '--role', 'guest')).code).toBe(2);
    expect(await members('invite', 'carl')).toMatchObject({
      code: 1,
      stderr: 'portcullis: /email ("carl") must be an e-mail address of at most 254 ASCII characters.\n',
    });
  });
});
