// Everyone who lists the processes of the machine reads their arguments: no command takes a secret there, or repeats one that it got so.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateSecret, SECRET_PREFIX, type SecretKind } from '../../src/domain/id.ts';
import { type CommandLine, createCommandLine, jsonOf, type Outcome } from '../cli/command-line.ts';

const KINDS: readonly SecretKind[] = ['gateway', 'master', 'platform', 'invitation'];
const PROVIDER_SECRET = 'sk-the-very-secret-0123456789-tail';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

async function invite(email: string): Promise<string> {
  const { invitation } = Object(jsonOf(await portcullis.run('members', 'invite', email, '--json')));
  return invitation.token;
}

const isRefused = ({ code, stdout, stderr }: Outcome, secret: string): void => {
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/--token-stdin < file.* --token-env <name>/);
  expect(stderr).not.toContain(secret);
  expect(stderr.split('\n')).toHaveLength(2);
};

describe('the token of an invitation', () => {
  it('is refused as an argument, is not repeated, and can still be used afterwards', async () => {
    const token = await invite('ada@example.com');
    isRefused(await portcullis.run('members', 'accept', token), token);
    isRefused(await portcullis.run('members', 'accept', `--token=${token}`), token);

    const { member } = Object(
      jsonOf(await portcullis.runWithInput(`${token}\n`, 'members', 'accept', '--token-stdin', '--json')),
    );
    expect(member.email).toBe('ada@example.com');
  });

  it('is taken from an environment variable', async () => {
    const token = await invite('bob@example.com');
    const accept = ['members', 'accept', '--token-env', 'INVITATION', '--json'];
    const { member } = Object(jsonOf(await portcullis.runWith({ INVITATION: token }, ...accept)));
    expect(member.email).toBe('bob@example.com');
  });

  it('must be somewhere', async () => {
    expect(await portcullis.run('members', 'accept')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: Say where the secret is: --token-stdin or --token-env.\n',
    });
  });

  it('that was cut off is not repeated either', async () => {
    isRefused(await portcullis.run('members', 'accept', 'pcli_cut'), 'pcli_cut');
  });

  it('is not in the command that an invitation shows', async () => {
    const { stdout } = await portcullis.run('members', 'invite', 'carl@example.com');
    const token = /pcli_\w+/.exec(stdout)?.[0] ?? '';
    const commands = stdout.split('\n').filter((line) => line.startsWith('  portcullis '));
    expect(commands.filter((line) => line.includes(token))).toEqual([]);
    expect(stdout).toContain('  portcullis members accept --token-stdin\n');
  });
});

describe('a secret of ours', () => {
  it.each(KINDS)('of kind %s is refused wherever it stands', async (kind) => {
    const secret = generateSecret(kind);
    expect(secret.startsWith(SECRET_PREFIX[kind])).toBe(true);
    for (const args of [
      ['keys', 'disable', secret],
      ['master-keys', 'delete', secret],
      ['usage', '--key', secret],
      ['rules', 'add', `--key=${secret}`, 'deny_models', 'x'],
      ['members', 'update', 'owner@localhost', '--name', `the token is ${secret}.`],
      [secret],
    ]) {
      isRefused(await portcullis.run(...args), secret);
    }
  });
});

describe('the secret of a provider', () => {
  it.each([
    [['add', 'openai', PROVIDER_SECRET, '--label', 'A']],
    [['add', 'openai', '--label', 'A', '--token', PROVIDER_SECRET]],
    [['add', 'openai', '--label', 'A', `--token=${PROVIDER_SECRET}`]],
    [['update', 'A', PROVIDER_SECRET]],
    [['update', 'A', '--token', PROVIDER_SECRET]],
  ])('is refused as an argument: %j', async (args) => {
    isRefused(await portcullis.run('provider-keys', ...args), PROVIDER_SECRET);
  });

  it.each([
    [['provider-keys', 'add', 'openai', '--label', 'A', `--secret=${PROVIDER_SECRET}`]],
    [['provider-keys', 'add', 'openai', '--label', 'A', `--token-stdin=${PROVIDER_SECRET}`]],
    [['provider-keys', 'add', 'openai', '--label', 'A', '--token-env', PROVIDER_SECRET]],
    [['provider-keys', 'remove', 'A', PROVIDER_SECRET]],
    [['custom-providers', 'add', 'acme', PROVIDER_SECRET]],
    [['custom-providers', 'add', 'acme', `--token=${PROVIDER_SECRET}`]],
    [['custom-providers', 'add', 'acme', '--base-url', `https://user:${PROVIDER_SECRET}@models.example/v1`]],
  ])('is not repeated by a command that cannot take it: %j', async (args) => {
    const { code, stdout, stderr } = await portcullis.run(...args);
    expect([code === 0, stdout]).toEqual([false, '']);
    expect(stderr).toMatch(/^portcullis: /);
    expect(stderr).not.toContain(PROVIDER_SECRET);
  });
});
