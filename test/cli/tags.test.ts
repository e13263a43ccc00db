import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const KEY = 'First gateway key';

let cli: CommandLine;

beforeAll(async () => {
  cli = await createCommandLine();
  await cli.run('custom-providers', 'add', 'acme', '--base-url', 'https://models.example/v1', '--keyless');
  await cli.run('custom-models', 'add', 'acme', 'org/own');
});
afterAll(() => cli.close());

/** Lines of a table, each as its cells. */
const cellsOf = (stdout: string): string[][] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd().split(/ {2,}/));

describe('tags of the organization’s own', () => {
  it('are put on a target, replaced there, listed and taken away', async () => {
    const set = async (...args: string[]) => Object(jsonOf(await cli.run('tags', 'set', ...args, '--json'))).tagSet;
    const first = await set('sandbox-free', 'team:research', 'reviewed');
    expect(first).toMatchObject({ target: 'sandbox-free', tags: ['reviewed', 'team:research'] });
    expect(await set('sandbox-free', 'team:sales')).toMatchObject({ id: first.id, tags: ['team:sales'] });
    await set('acme/*', 'region:eu');
    const listed = await cli.run('tags', 'list');
    expect(cellsOf(listed.stdout).map(([target, , tags]) => [target, tags])).toEqual([
      ['TARGET', 'TAGS'],
      ['acme/*', 'region:eu'],
      ['sandbox-free', 'team:sales'],
    ]);
    expect(await cli.run('tags', 'remove', 'sandbox-free')).toEqual({
      code: 0,
      stdout: `Removed ${first.id}.\nNo new access.\n`,
      stderr: '',
    });
    expect(await cli.run('tags', 'remove', 'sandbox-free')).toMatchObject({
      code: 1,
      stderr: 'portcullis: There are no tags of your own on "sandbox-free".\n',
    });
  });

  it('are refused where they would state a fact of the catalogue’s models', async () => {
    expect(await cli.run('tags', 'set', 'sandbox/*', 'region:eu')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"region:eu" would state a fact of sandbox/sandbox-faulty'),
    });
  });

  it('are known to rules, to lists of models and to what a key may reach', async () => {
    await cli.run('tags', 'set', 'acme/*', 'region:eu', 'team:research');
    const added = await cli.run('rules', 'add', '--key', KEY, 'allow_tags', 'region:eu', 'team:reserch');
    expect([added.code, added.stderr]).toEqual([
      0,
      expect.stringContaining('No model has the tag "team:reserch"; did you mean `team:research`?'),
    ]);
    const { stdout } = await cli.run('models', '--key', KEY, '--tags');
    const [titles, ...rows] = cellsOf(stdout);
    expect(titles).toEqual(['MODEL', 'TAG', 'SOURCE']);
    expect(rows.filter(([, tag]) => tag?.startsWith('region:') || tag?.startsWith('team:'))).toEqual([
      ['sandbox/sandbox-free', 'region:eu', expect.stringMatching(/^the catalogue of \d{4}-\d\d-\d\d$/)],
      ['acme/org/own', 'region:eu', 'your own, on acme/*'],
      ['acme/org/own', 'team:research', 'your own, on acme/*'],
    ]);
    const access = await cli.run('access', KEY);
    expect(access.stdout).toMatch(/^org\/own +acme /m);
    expect(access.stdout).not.toContain('sandbox-paid');
    const explained = await cli.run('policy', 'explain', '--key', KEY, '--model', 'sandbox-paid');
    expect(explained.stdout).toContain('tags no_training, region:us, retention:none, stability:stable are not among');
  });

  it('say of a fact of a provider by which document it is known', async () => {
    const models = await cli.runWith({ MISTRAL_API_KEY: 'sk-none' }, 'models', '--tags', '--against', 'env');
    const [row] = cellsOf(models.stdout).filter(([id, tag]) => id?.startsWith('mistral/') && tag === 'region:eu');
    expect(row?.[2]).toMatch(/^Mistral AI, Help Center, .* \(2026-11-25\)$/);
    const moved = { MISTRAL_API_KEY: 'sk-none', MISTRAL_BASE_URL: 'https://us.mistral.example/v1' };
    const elsewhere = cellsOf((await cli.runWith(moved, 'models', '--tags', '--against', 'env')).stdout);
    expect([...new Set(elsewhere.filter(([id]) => id?.startsWith('mistral/')).map(([, tag]) => tag))]).toEqual([
      'stability:stable',
    ]);
  });

  it('say what the rules newly permit because of them, and are refused for that on request', async () => {
    await cli.run('tags', 'remove', 'acme/*');
    await cli.run('rules', 'add', '--organization', 'allow_tags', 'region:eu');
    expect(await cli.run('tags', 'set', 'acme/*', 'region:eu', '--fail-on-new-access')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^portcullis: The change is refused: it would newly permit acme\/org\/own for [^,]+, [^,]+\.\n$/,
      ),
    });
    expect((await cli.run('tags', 'list')).stdout).toBe('There are no tags of your own.\n');
    const set = await cli.run('tags', 'set', 'acme/*', 'region:eu');
    expect(set.stdout).toMatch(/^2 accesses are new:$/m);
    expect(set.stdout.match(/acme\/org\/own/g)).toHaveLength(2);
    const removed = await cli.run('tags', 'remove', 'acme/*', '--fail-on-new-access', '--json');
    expect(Object(jsonOf(removed)).widens).toEqual({ count: 0, cells: [] });
  });
});
