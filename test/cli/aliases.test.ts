import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const KEY = 'First gateway key';

let cli: CommandLine;

beforeAll(async () => {
  cli = await createCommandLine();
  await cli.run('projects', 'create', 'Research');
});
afterAll(() => cli.close());

/** Lines of a table, each as its cells. */
const cellsOf = (stdout: string): string[][] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd().split(/ {2,}/));

describe('aliases', () => {
  it('are set, replaced, listed, shown and removed, of the organization and of a project', async () => {
    expect(await cli.run('aliases', 'list')).toEqual({ code: 0, stdout: 'There are no aliases.\n', stderr: '' });
    const set = async (...args: string[]) => Object(jsonOf(await cli.run('aliases', 'set', ...args, '--json'))).alias;
    const first = await set('fast', 'sandbox-paid', 'sandbox-free');
    expect(first).toMatchObject({ name: 'fast', models: ['sandbox-paid', 'sandbox-free'], weights: null });
    const weighted = await set('fast', 'sandbox-free', 'sandbox-paid', '--weights', '80,20');
    expect(weighted).toMatchObject({ id: first.id, models: ['sandbox-free', 'sandbox-paid'], weights: [80, 20] });
    const own = await set('fast', 'sandbox-slow', '--project', 'Research');
    expect(own.id).not.toBe(first.id);

    expect(cellsOf((await cli.run('aliases', 'list')).stdout)).toEqual([
      ['ALIAS', 'OF', 'MODELS'],
      ['fast', 'project Research', 'sandbox-slow'],
      ['fast', 'organization', 'sandbox-free (80), sandbox-paid (20)'],
    ]);
    const shown = await cli.run('aliases', 'show', 'fast', '--project', 'Research');
    expect([cellsOf(shown.stdout)[1], shown.stderr]).toEqual([
      ['fast', 'project Research', 'sandbox-slow'],
      'portcullis: warning: In this project it takes the place of the organization\'s alias "fast".\n',
    ]);
    expect(await cli.run('aliases', 'remove', 'fast')).toEqual({
      code: 0,
      stdout: `Removed ${first.id}.\n`,
      stderr: '',
    });
    expect(await cli.run('aliases', 'remove', 'fast')).toMatchObject({
      code: 1,
      stderr: 'portcullis: There is no alias "fast"; the project Research has one.\n',
    });
    expect((await cli.run('aliases', 'remove', own.id)).code).toBe(0);
  });

  it('are refused in the words of the command line', async () => {
    const set = (...args: string[]) => cli.run('aliases', 'set', ...args);
    expect(await set('fa*st', 'sandbox-free')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The name ("fa*st") must be 1 to 128 characters'),
    });
    expect(await set('fast', 'sandbox-fre')).toMatchObject({
      code: 1,
      stderr: 'portcullis: Nothing has the name "sandbox-fre"; did you mean `sandbox-free`?\n',
    });
    expect(await set('fast', 'sandbox-free', '--weights', '80;20')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('It must be whole numbers with commas between them, such as 80,20.'),
    });
    expect(await set('fast', 'sandbox-free', '--weights', '80,20')).toMatchObject({
      code: 2,
      stderr: 'portcullis: --weights must hold 1 entries, one for each model.\n',
    });
    expect(await set('fast', 'sandbox-free', '--weights', '1001')).toMatchObject({
      code: 2,
      stderr: 'portcullis: --weights 0 (1001) must be a whole number from 0 to 1000.\n',
    });
  });
});

describe('an alias is shown', () => {
  beforeAll(async () => {
    await cli.run('aliases', 'set', 'fast', 'sandbox-slow', 'sandbox-free', 'gpt-5');
    await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'sandbox-slow');
  });

  it('among the models that a key may use, with those of its models that it may', async () => {
    const { data } = Object(jsonOf(await cli.run('models', '--key', KEY, '--json')));
    expect(data[0]).toMatchObject({
      id: 'fast',
      owned_by: 'organization',
      aliases: [],
      description: 'An alias of sandbox-free.',
      providers: [{ providerId: 'sandbox', externalId: 'sandbox-free' }],
    });
    const mapped = Object(jsonOf(await cli.run('models', '--key', KEY, '--mapped', '--json'))).data;
    expect(mapped.map(({ id }: { id: string }) => id)).not.toContain('fast');
    expect((await cli.run('models')).stdout).toMatch(/^fast +sandbox +/m);
  });

  it('by policy explain, with its candidates in its order', async () => {
    const explained = jsonOf(await cli.run('policy', 'explain', '--key', KEY, '--model', 'fast', '--json'));
    expect(explained).toMatchObject({
      outcome: 'permit',
      request: { action: 'chat', model: 'fast' },
      alias: { name: 'fast', projectId: null, models: ['sandbox-slow', 'sandbox-free', 'gpt-5'], weights: null },
      candidates: ['sandbox/sandbox-slow', 'sandbox/sandbox-free'],
      permitted: ['sandbox/sandbox-free'],
      withoutCredential: ['openai/gpt-5', 'openrouter/gpt-5'],
    });
    const { stdout } = await cli.run('policy', 'explain', '--key', KEY, '--model', 'fast');
    expect(stdout).toContain('\nfast is an alias of the organization: sandbox-slow, sandbox-free, gpt-5.\n');
  });

  it('by access, of a key and of the alias itself', async () => {
    expect((await cli.run('access', KEY)).stdout).toMatch(/^ALIAS +REACHES\nfast +sandbox\/sandbox-free$/m);
    await cli.run('aliases', 'set', 'fast', 'sandbox-paid', '--project', 'Research');
    await cli.run('keys', 'create', '--description', 'Theirs', '--project', 'Research');
    const { holders } = Object(jsonOf(await cli.run('access', '--model', 'fast', '--json')));
    const reached = holders.map(({ name, mappings }: { name: string; mappings: string[] }) => [name, mappings]);
    expect(reached.filter(([name]: [string]) => !name.startsWith('Playground'))).toEqual([
      [KEY, ['sandbox/sandbox-free']],
      ['Theirs', ['sandbox/sandbox-paid']],
      [expect.stringContaining('@'), ['sandbox/sandbox-slow', 'sandbox/sandbox-free']],
    ]);
  });

  it('by a warning where a rule names it, since rules judge models', async () => {
    const added = await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'fast');
    expect([added.code, added.stderr]).toEqual([
      0,
      'portcullis: warning: "fast" is an alias; rules judge the models of an alias, so it matches nothing: name the models.\n',
    ]);
    const { stdout } = await cli.run('policy', 'lint');
    expect(stdout).toMatch(/unknown-model +.*"fast" is an alias; rules judge models, so it matches nothing\./);
  });
});
