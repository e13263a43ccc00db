// `portcullis models`: what a key, or the organization, may use, with prices (issue 12, 17).
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const KEY = 'First gateway key';

let cli: CommandLine;

beforeAll(async () => {
  cli = await createCommandLine();
  await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'sandbox-p*');
  await cli.run('rules', 'add', '--organization', 'deny_models', 'sandbox-slow');
});
afterAll(() => cli.close());

const idsOf = (list: unknown): unknown[] => Object(list).data.map(({ id }: { id: string }) => id);

it('lists what the organization may use, aligned, with prices in USD per million tokens', async () => {
  const { code, stdout, stderr } = await cli.run('models');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [title, ...lines] = stdout.split('\n');
  expect(title).toMatch(/^MODEL +PROVIDERS +INPUT +OUTPUT +OTHER PRICES +CONTEXT +LONGEST ANSWER$/);
  expect(
    lines
      .find((line) => line.startsWith('sandbox-paid'))
      ?.split(/ {2,}/)
      .slice(0, 5),
  ).toEqual(['sandbox-paid', 'sandbox', '1', '4', '-']);
  expect(stdout).toMatch(/^sandbox-image-plus .* per image made /m);
  expect(stdout).toContain('\n6 models; INPUT and OUTPUT in USD per million tokens.\n');
  expect(stdout).not.toMatch(/sandbox-slow|gpt-/);
});

it('lists what a key may use, as GET /v1/models answers it', async () => {
  const list = jsonOf(await cli.run('models', '--key', KEY, '--json'));
  expect(list).toMatchObject({ object: 'list' });
  expect(idsOf(list)).toEqual([
    'sandbox-faulty',
    'sandbox-free',
    'sandbox-image-max',
    'sandbox-image-plus',
    'sandbox-moderation',
  ]);
  expect(idsOf(jsonOf(await cli.run('models', '--key', KEY, '--mapped', '--json')))).toContain('sandbox/sandbox-free');
});

it('counts a credential of its own environment on request', async () => {
  const list = jsonOf(await cli.runWith({ OPENAI_API_KEY: 'sk-none' }, 'models', '--against', 'env', '--json'));
  expect(idsOf(list)).toContain('gpt-5');
});

it('says from where calls are permitted, where not from anywhere', async () => {
  await cli.run('rules', 'add', '--key', KEY, 'allow_ip_cidrs', '10.0.0.0/8');
  expect((await cli.run('models', '--key', KEY)).stdout).toContain('\nCalls are permitted from 10.0.0.0/8.\n');
});

it('names a key that there is not', async () => {
  expect(await cli.run('models', '--key', 'None')).toMatchObject({
    code: 1,
    stderr: 'portcullis: There is no key with the id, masked token or description "None".\n',
  });
});
