import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validator } from '../../src/lib/schemas.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const validateWorldDocument = validator('WorldDocument');

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const parsed = (...name: string[]): unknown => JSON.parse(readFileSync(path.join(portcullis.folder, ...name), 'utf8'));

const FIXTURE = `
name: One
given: {catalog: {models: {swift: {providers: {acme: {}}}}}}
requests: {model: swift}
expect: [{permit: all}]
`;

describe('portcullis policy export', () => {
  it('writes the rules of everyone in the database, as OPA and as other commands read them', async () => {
    await portcullis.run('rules', 'add', '--organization', 'deny_models', 'sandbox-slow', '--description', 'Too slow');
    await portcullis.run('rules', 'add', '--key', 'First gateway key', 'allow_models', '*', '--status', 'inactive');

    const written = jsonOf(await portcullis.run('policy', 'export', '-o', 'out', '--json'));

    expect(written).toEqual({ path: 'out', bundleDigest: readBundle().digest, subjects: 4, cases: 0 });
    const world = parsed('out', 'world.json');
    if (!validateWorldDocument(world)) throw new Error('world.json is not what it must be');
    const [organization] = world.organizations;
    const [rule] = organization?.rules ?? [];
    const [member] = organization?.members ?? [];
    const [key, playground] = organization?.keys ?? [];
    expect(rule).toMatchObject({
      ruleType: 'deny_models',
      ruleValue: { models: ['sandbox-slow'] },
      description: 'Too slow',
    });
    expect(parsed('out', 'data.json')).toEqual({
      subjects: {
        [organization?.id ?? '']: {
          enforce: { deny_models: { exact: { 'sandbox-slow': [rule?.id] }, prefixes: {}, rules: [rule?.id] } },
        },
        [member?.id ?? '']: { enforce: {} },
        [key?.id ?? '']: { enforce: {} },
        [playground?.id ?? '']: { enforce: {} },
      },
    });
    expect((await portcullis.run('policy', 'diff', 'out/world.json')).code).toBe(0);
  });

  it('writes fixtures alone, without a database, and reads its own document again', async () => {
    writeFileSync(path.join(portcullis.folder, 'one.yaml'), FIXTURE);
    const nowhere = { DATA_DIR: path.join(portcullis.folder, 'nowhere') };
    const alone = await portcullis.runWith(nowhere, 'policy', 'export', 'one.yaml', '-o', 'alone.tar.gz');
    expect(alone).toEqual({
      code: 0,
      stdout: 'Wrote the policy, the rules of 0 subjects and 1 case to alone.tar.gz.\n',
      stderr: '',
    });
    const again = await portcullis.run(
      'policy',
      'export',
      'one.yaml',
      '--rules',
      'out/world.json',
      '-o',
      'again',
      '--json',
    );
    expect(jsonOf(again)).toMatchObject({ subjects: 4, cases: 1 });
    expect(parsed('again', 'world.json')).toEqual(parsed('out', 'world.json'));
  });

  it('refuses a folder with something in it, and fixtures that make no sense', async () => {
    expect(await portcullis.run('policy', 'export', '-o', 'out')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^portcullis: .*out is there already and is not an empty folder\.\n$/),
    });
    writeFileSync(path.join(portcullis.folder, 'bad.yaml'), FIXTURE.replace('swift}', 'swft}'));
    expect(await portcullis.run('policy', 'export', 'bad.yaml', '-o', 'bad')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('bad.yaml:4:'),
    });
  });
});
