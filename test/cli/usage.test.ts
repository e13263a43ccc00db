import { existsSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type CommandLine, createCommandLine } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

describe('portcullis', () => {
  it('tells its version and how it is used', async () => {
    expect(await portcullis.run('--version')).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    const help = await portcullis.run('rules', 'add', '--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('Usage: portcullis rules add [options] <ruleType> [entries...]');
    expect(help.stdout).toContain("$ portcullis rules add --key CI deny_models 'openai/*' claude-opus-4");
  });

  it.each([
    [['keys', 'list', '--colour'], "unknown option '--colour'"],
    [['key', 'list'], "unknown command 'key'"],
    [['keys', 'disable'], "missing required argument 'key'"],
    [['keys', 'create', '--period', '1'], "option '--period <length>' argument '1' is invalid."],
    [['keys', 'create', '--ttl', '2weeks'], "option '--ttl <length>' argument '2weeks' is invalid."],
    [
      ['rules', 'add', '--organization', 'deny_all', 'x'],
      "command-argument value 'deny_all' is invalid for argument 'ruleType'.",
    ],
    [['keys', 'create', '--period-limit', '1'], '--period-limit and --period come together.'],
    [['rules', 'add', 'deny_models', 'x'], 'Say whose rule it is: --key, --member or --organization.'],
    [['rules', 'add', '--organization', 'deny_models'], 'A rule of type deny_models needs at least one entry.'],
    [
      ['rules', 'add', '--organization', '--key', 'x', 'deny_models', 'x'],
      "option '--key <key>' cannot be used with option '--organization'",
    ],
    [
      ['rules', 'add', '--organization', 'deny_models', 'x', '--type', 'free'],
      'Price options go with allow_pricing and deny_pricing, not with deny_models.',
    ],
  ])('exits with 2 and says what is wrong with %j', async (args, message) => {
    const { code, stdout, stderr } = await portcullis.run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`portcullis: ${message}`);
  });

  it('exits with 1 and names a wrong variable', async () => {
    expect(await portcullis.runWith({ PORT: 'http' }, 'keys', 'list')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: PORT must be a whole number from 0 to 65535.\n',
    });
  });

  it('creates no database where there is none', async () => {
    const empty = `${portcullis.folder}/elsewhere`;
    const { code, stdout, stderr } = await portcullis.runWith({ DATA_DIR: empty }, 'keys', 'create');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^portcullis: There is no database at .*elsewhere.*: start the server once to create it\.\n$/,
    );
    expect(existsSync(empty)).toBe(false);
    expect(readdirSync(portcullis.folder)).not.toContain('data');
  });
});
