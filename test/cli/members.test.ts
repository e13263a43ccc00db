import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSignInLink } from '../../src/admin/sign-in/sign-in-links.ts';
import { createInvitation } from '../../src/admin/tenants/invitations.ts';
import { getMember } from '../../src/store/tenants/member-records.ts';
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
    expect(invited.stdout).toContain(`\n  http://127.0.0.1:8080/oauth/interaction/invitation?token=${token}\n`);

    expect(cells(await members('invitations', '--wide'))).toEqual([
      ['E-MAIL', 'ID', 'ROLE', 'STATUS', 'EXPIRES', 'INVITED BY', 'TOKEN'],
      ['ada@example.com', id, 'admin', 'pending', expect.any(String), '-', `${token.slice(0, 9)}…${token.slice(-4)}`],
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
        requestsPerMinute: null,
        tokensPerMinute: null,
      },
    });
    expect(await accept(token)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no open invitation with this token.\n',
    });

    expect(cells(await members('list')).map((row) => row.filter((_, at) => at !== 2))).toEqual([
      ['NAME', 'E-MAIL', 'ROLE'],
      ['Ada', 'ada@example.com', 'admin'],
      ['-', 'owner@localhost', 'owner'],
    ]);

    const updated = jsonOf(
      await members('update', 'ada@example.com', '--role', 'developer', '--name', 'none', '--json'),
    );
    expect(updated).toMatchObject({
      member: { ...accepted.member, name: null, role: 'developer', updatedAt: expect.any(String) },
    });

    const limited = await members('update', 'ada@example.com', '--rpm', '30', '--tpm', 'none');
    expect(limited.stdout).toMatch(/ PER MINUTE\n.* 30 calls\n$/);

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
        requestsPerMinute: null,
        tokensPerMinute: null,
      },
    });
    expect(await members('add', 'eve@example.com')).toMatchObject({
      code: 1,
      stderr: 'portcullis: eve@example.com is a member already.\n',
    });
    expect(
      jsonOf(await portcullis.run('keys', 'create', '--owner', 'eve@example.com', '--description', 'Eve', '--json')),
    ).toMatchObject({
      key: { createdBy: added.member.id },
    });
    expect(await members('remove', 'eve@example.com')).toMatchObject({ code: 0 });
  });

  it('lists who invited by e-mail, where it was not the command line', async () => {
    const { organizationId } = portcullis.first;
    const owner = await portcullis.store.read((db) => getMember(db, organizationId, 'owner@localhost'));
    const actor = {
      kind: 'master_key',
      masterKeyId: 'mkey_1',
      organizationId,
      memberId: owner.id,
      role: 'owner',
    } as const;
    const body = { email: 'dan@example.com', role: 'developer' };
    const pepper = portcullis.secrets.peppers[0];
    const { invitation } = await portcullis.store.write((db, now) =>
      createInvitation(db, actor, body, { now, pepper }),
    );

    expect(cells(await members('invitations', '--wide'))).toContainEqual([
      'dan@example.com',
      invitation.id,
      'developer',
      'pending',
      invitation.expiresAt.replace('T', ' ').replace(/\.\d+Z$/, 'Z'),
      'owner@localhost',
      invitation.maskedToken,
    ]);
    await members('revoke', invitation.id);
  });

  it('revokes an invitation', async () => {
    const { invitation } = Object(jsonOf(await members('invite', 'bob@example.com', '--json')));
    expect(invitation).toMatchObject({
      role: 'developer',
      status: 'pending',
      invitedBy: null,
      url: `http://127.0.0.1:8080/oauth/interaction/invitation?token=${invitation.token}`,
    });
    expect(await members('revoke', invitation.id)).toEqual({
      code: 0,
      stdout: `Revoked ${invitation.id}.\n`,
      stderr: '',
    });
    expect(await accept(invitation.token)).toMatchObject({ code: 1 });
    const { invitations } = Object(jsonOf(await members('invitations', '--json')));
    expect(invitations[0]).toMatchObject({ id: invitation.id, status: 'revoked' });
  });

  it('revokes the open invitation of an e-mail', async () => {
    const invite = async () => Object(jsonOf(await members('invite', 'Kim@example.com', '--json'))).invitation;
    const first = await invite();
    await members('revoke', first.maskedToken);
    const { id } = await invite();
    expect(await members('revoke', 'kim@Example.com')).toMatchObject({ code: 0, stdout: `Revoked ${id}.\n` });
    expect(await members('revoke', 'kim@example.com')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no open invitation with the id, masked token or e-mail "kim@example.com".\n',
    });
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
      stderr: 'portcullis: Say what to change: --name, --role, --rpm, --tpm.\n',
    });
    expect((await members('invite', 'carl@example.com', '--role', 'guest')).code).toBe(2);
    expect(await members('invite', 'carl')).toMatchObject({
      code: 2,
      stderr: 'portcullis: The e-mail ("carl") must be an e-mail address of at most 254 ASCII characters.\n',
    });
  });
});

describe('portcullis members sign-in-link', () => {
  const link = (env: Record<string, string>, ...args: string[]) =>
    portcullis.runWith(env, 'members', 'sign-in-link', 'owner@localhost', ...args);

  it('makes a link, told once, that signs the member in', async () => {
    const { code, stdout, stderr } = await link({});
    expect([code, stderr]).toEqual([0, '']);
    const [, token = ''] =
      /^http:\/\/127\.0\.0\.1:8080\/oauth\/interaction\/link\?token=(pcls_\w{46})\n\nThis link is shown once, now\. It signs owner@localhost in once, until \S+\.\n$/.exec(
        stdout,
      ) ?? [];
    const { peppers } = portcullis.secrets;
    const found = await portcullis.store.read((db) => readSignInLink(db, token, { now: Date.now(), peppers }));
    expect([found.member.email, found.organizationName]).toEqual(['owner@localhost', 'Default']);
  });

  it('leads to PUBLIC_URL where there is one, and is JSON on request', async () => {
    const made = jsonOf(await link({ PUBLIC_URL: 'https://gateway.example/' }, '--json'));
    expect(made).toEqual({
      signInLink: {
        id: expect.stringMatching(/^link_/),
        memberId: expect.stringMatching(/^mem_/),
        email: 'owner@localhost',
        expiresAt: expect.any(String),
        token: expect.stringMatching(/^pcls_/),
        url: `https://gateway.example/oauth/interaction/link?token=${Object(made).signInLink.token}`,
      },
    });
  });

  it.each([
    [{ PORT: '9000', HOST: '0.0.0.0' }, 'http://127.0.0.1:9000/oauth/'],
    [{ HOST: '::1' }, 'http://[::1]:8080/oauth/'],
    [{ PORT: '0' }, '/oauth/'],
  ])('leads to where the gateway listens: %j', async (env, start) => {
    expect((await link(env)).stdout.startsWith(start)).toBe(true);
  });

  it('is refused for who is no member', async () => {
    expect(await members('sign-in-link', 'nobody@example.com')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no such member.\n',
    });
  });
});
