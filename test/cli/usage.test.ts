import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildText, readBuild } from '../../src/version.ts';
import { type CommandLine, createCommandLine } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
  for (const folder of ['empty', 'rules']) mkdirSync(`${portcullis.folder}/${folder}`);
  writeFileSync(`${portcullis.folder}/rules/all.yaml`, 'organization: { rules: {} }\n');
  writeFileSync(`${portcullis.folder}/text.json`, 'text');
});
afterAll(() => portcullis.close());

describe('portcullis', () => {
  it('tells its version and how it is used', async () => {
    expect(await portcullis.run('--version')).toEqual({ code: 0, stdout: `${buildText(readBuild())}\n`, stderr: '' });
    const help = await portcullis.run('rules', 'add', '--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('Usage: portcullis rules add [options] <ruleType> [entries...]');
    expect(help.stdout).toContain("$ portcullis rules add --key CI deny_models 'openai/*' claude-opus-4");
  });

  it.each([
    [['keys', 'list', '--colour'], "unknown option '--colour'"],
    [['key', 'list'], "unknown command 'key'"],
    [['keys', 'disable'], "missing required argument 'key'"],
    [['keys', 'create', '--period', '1'], "--period <length>: '1' is not valid."],
    [['keys', 'create', '--ttl', '2weeks'], "--ttl <length>: '2weeks' is not valid."],
    [
      ['rules', 'add', '--organization', 'deny_all', 'x'],
      "<ruleType>: 'deny_all' is not valid. It must be one of allow_models, ",
    ],
    [['keys', 'create', '--period-limit', '1'], '--period-limit and --period come together.'],
    [['rules', 'add', 'deny_models', 'x'], 'Name the owner of the rule: --key, --member, --group or --organization.'],
    [['rules', 'add', '--organization', 'deny_models'], 'A rule of type deny_models needs at least one entry.'],
    [
      ['rules', 'add', '--organization', '--key', 'x', 'deny_models', 'x'],
      "option '--key <key>' cannot be used with option '--organization'",
    ],
    [
      ['rules', 'add', '--organization', 'deny_models', 'x', '--type', 'free'],
      'Price options go with allow_pricing and deny_pricing, not with deny_models.',
    ],
    // Enumerated options name the words that there are (issue 12, 17).
    [['audit', 'list', '--action', 'key.made'], 'Allowed choices are organization.create, organization.update, '],
    [['usage', '--by', 'week'], 'Allowed choices are hour, day, total.'],
    [['usage', '--group-by', 'key,team'], 'It must be a comma list of member, model, provider, project, key.'],
    [
      ['custom-models', 'add', 'a', 'm', '--input', 'text,smell'],
      'It must be a comma list of text, image, audio, video, file.',
    ],
    [['custom-models', 'add', 'a', 'm', '--output', 'video'], 'It must be a comma list of text, image, audio.'],
    [['custom-models', 'add', 'a', 'm', '--price', 'promt=1'], 'The name must be one of prompt, completion, request, '],
    [['members', 'add', 'a@b.c', '--role', 'guest'], 'Allowed choices are owner, admin, developer.'],
    [['keys', 'list', '--kind', 'any'], 'Allowed choices are regular, playground.'],
  ])('exits with 2 and says what is wrong with %j', async (args, message) => {
    const { code, stdout, stderr } = await portcullis.run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^portcullis: /);
    expect(stderr).toContain(message);
  });

  // The admin functions name a JSON pointer, the file system a path: the command line says which option or file it was.
  it.each([
    [['decisions', 'list', '--from', '2026-11-26', '--to', '2026-11-25'], '--from must lie before --to.'],
    [['replay', '--from', '2100-01-01'], '--from must lie before now, the default of --to.'],
    [['usage', '--from', '2100-01-01'], '--from must lie before now, the default of --to.'],
    [['audit', 'list', '--from', '2100-01-01', '--to', '2099-01-01'], '--from must lie before --to.'],
    [['calls', 'list', '--limit', '1000'], '--limit ("1000") must be a whole number from 1 to 200.'],
    [['calls', 'list', '--rule', 'x'], '--rule ("x") must be an id: its prefix and 32 hexadecimal digits.'],
    [['calls', 'list', '--reason', 'x'], '--reason ("x") must be a rule type, such as deny_models.'],
    [['calls', 'list', '--cursor', 'x'], '--cursor: The cursor does not belong to this list.'],
    [
      ['policy', 'explain', '--key', 'First gateway key', '--model', 'sandbox-free', '--address', 'x'],
      '--address ("x") is not',
    ],
    [['policy', 'diff', '--draft', 'nope.yaml'], 'There is no file nope.yaml.'],
    [['policy', 'diff', 'nope'], 'There is no folder or file nope.'],
    [['policy', 'diff', 'empty'], 'empty holds neither a database nor world.json.'],
    [['policy', 'lint', 'text.json/x'], 'There is no folder or file text.json/x.'],
    [['policy', 'lint', 'text.json'], 'text.json is not valid JSON.'],
    [['policy', 'apply', 'rules', '--plan', 'nope.json'], 'nope.json: there is no such file or folder.'],
    [['policy', 'test', 'text.json', '--rules', 'nope.json'], 'There is no file nope.json.'],
    [['policy', 'test', 'text.json', '--database', '/nope'], 'There is no folder or file /nope.'],
    [['policy', 'generate', '--database', 'nope', '-o', 'x.yaml'], 'There is no database in nope.'],
    [['policy', 'tighten', 'CI', '-o', 'nope/x.yaml'], 'nope/x.yaml cannot be written: there is no folder '],
    [['policy', 'apply', 'rules', '--plan', 'text.json'], 'text.json is not valid JSON.'],
    [['policy', 'plan', 'rules', '--out', 'nope/plan.json'], 'nope/plan.json cannot be written: there is no folder '],
    [['policy', 'tighten', 'CI', '-o', 'empty'], 'empty is a folder.'],
  ])('exits with 2 and names the option or file of %j', async (args, message) => {
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
