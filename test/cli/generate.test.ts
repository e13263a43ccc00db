import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runGenerate } from '../../src/cli/policy/generate-work.ts';
import { progressBar } from '../../src/cli/terminal/output.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const KEY = ['--key', 'First gateway key'];

describe('portcullis policy generate', () => {
  it('refuses where there are no rules, and without saying whose', async () => {
    expect(await portcullis.run('policy', 'generate', '--database', '-o', 'none.yaml')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There are no active rules to generate fixtures from.\n',
    });
    expect(await portcullis.run('policy', 'generate', '-o', 'none.yaml')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: Choose whose rules: --key, --database or --rules.\n',
    });
  });

  it('writes fixtures of the rules in the database that pass as they are, and fail for another border', async () => {
    await portcullis.run('rules', 'add', '--organization', 'allow_ip_cidrs', '10.0.0.0/8', '2001:db8::/32');
    await portcullis.run('rules', 'add', '--member', 'owner@localhost', 'deny_pricing', '--max-output-price', '3.5');
    await portcullis.run('rules', 'add', ...KEY, 'allow_models', 'sandbox-*', 'gpt-5', '--mode', 'report');
    await portcullis.run('rules', 'add', ...KEY, 'deny_providers', 'acme', '--status', 'inactive');

    const written = jsonOf(await portcullis.run('policy', 'generate', '--database', '-o', 'all.yaml', '--json'));
    expect(written).toEqual({ file: 'all.yaml', fixtures: 7, requests: expect.any(Number) });
    const { code, stdout } = await portcullis.run('policy', 'test', 'all.yaml');
    expect({ code, last: stdout.trimEnd().split('\n').at(-1) }).toMatchObject({
      code: 0,
      last: expect.stringContaining('7 fixtures: 7 passed'),
    });

    const file = path.join(portcullis.folder, 'all.yaml');
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain('deny_providers');
    writeFileSync(file, text.replaceAll('10.0.0.0/8', '10.0.0.0/9'));
    const failed = await portcullis.run('policy', 'test', 'all.yaml');
    expect(failed.code).toBe(1);
    expect(failed.stdout).toContain('address=10.255.255.255');
  });

  it('writes one file for each subject with rules into a folder, by name and id', async () => {
    const written = Object(jsonOf(await portcullis.run('policy', 'generate', '--database', '-o', 'all', '--json')));
    expect(written).toEqual({ folder: 'all', files: 3, fixtures: 7, requests: expect.any(Number) });
    expect(readdirSync(path.join(portcullis.folder, 'all')).sort()).toEqual([
      expect.stringMatching(/^default\.org_[0-9a-f]{32}\.yaml$/),
      expect.stringMatching(/^first-gateway-key\.key_[0-9a-f]{32}\.yaml$/),
      expect.stringMatching(/^owner-localhost\.mem_[0-9a-f]{32}\.yaml$/),
    ]);
    const { code, stdout } = await portcullis.run('policy', 'test', 'all');
    expect([code, stdout]).toEqual([0, expect.stringContaining('7 fixtures: 7 passed')]);
  });

  it('writes one file a key with --database, of the rules of that key alone', async () => {
    const other = await createCommandLine();
    for (const name of ['One', 'Two']) {
      await other.run('keys', 'create', '--description', name);
      await other.run('rules', 'add', '--key', name, 'deny_models', `sandbox-${name === 'One' ? 'free' : 'paid'}`);
    }
    const many = await other.run('policy', 'generate', '--database', '-o', 'keys');
    const texts = readdirSync(path.join(other.folder, 'keys'))
      .sort()
      .map((file) => [file, readFileSync(path.join(other.folder, 'keys', file), 'utf8')] as const);
    await other.run('rules', 'remove', /rule_[0-9a-f]{32}/.exec(texts[0]?.[1] ?? '')?.[0] ?? '');
    const one = await other.run('policy', 'generate', '--database', '-o', 'key');
    other.close();

    expect(many.stdout).toMatch(/^Wrote 2 fixtures with \d+ requests to 2 files in keys\.\n$/);
    expect(texts.map(([file, text]) => [file, text.match(/deny_models: \S+/g)])).toEqual([
      [expect.stringMatching(/^one\.key_[0-9a-f]{32}\.yaml$/), ['deny_models: [sandbox-free]']],
      [expect.stringMatching(/^two\.key_[0-9a-f]{32}\.yaml$/), ['deny_models: [sandbox-paid]']],
    ]);
    expect(one.stdout).toMatch(/^Wrote 1 fixture with \d+ requests to 1 file in key\.\n$/);
  });

  it('shows on a terminal how many keys, members and organizations are done, of how many', async () => {
    const drawn: string[] = [];
    const terminal = {
      isTTY: true,
      write: (text: string | Uint8Array) => {
        drawn.push(String(text));
        return true;
      },
    };
    const output = path.join(portcullis.folder, 'shown');
    const env = { DATA_DIR: portcullis.folder };
    await runGenerate(env, { database: true, output, json: true }, progressBar('Generating fixtures', terminal));
    const line = '\r\u001b[2K';
    expect(drawn.slice(-2)).toEqual([`${line}Generating fixtures ${'█'.repeat(30)} 3/3`, line]);
    expect(drawn.length).toBeGreaterThan(2);
  });

  it('takes the rules of one key, or of an exported document', async () => {
    const created = jsonOf(await portcullis.run('keys', 'create', '--description', 'Other', '--json'));
    expect(created).toHaveProperty('key.id');
    await portcullis.run('rules', 'add', '--key', 'Other', 'deny_models', 'sandbox-slow');
    const { stdout } = await portcullis.run('policy', 'generate', '--key', 'Other', '-o', 'one.yaml');
    expect(stdout).toMatch(/^Wrote 7 fixtures with \d+ requests to one\.yaml\.\n$/);
    expect(readFileSync(path.join(portcullis.folder, 'one.yaml'), 'utf8')).not.toContain('allow_models');

    const rules = [{ id: 'rule_1', ruleType: 'deny_models', ruleValue: { models: ['a/*'] } }];
    writeFileSync(
      path.join(portcullis.folder, 'world.json'),
      JSON.stringify({ organizations: [{ id: 'org_1', rules }] }),
    );
    const document = await portcullis.run(
      'policy',
      'generate',
      '--rules',
      'world.json',
      '-o',
      'document.yaml',
      '--json',
    );
    expect(jsonOf(document)).toMatchObject({ fixtures: 1 });
    expect((await portcullis.run('policy', 'test', 'document.yaml', '--coverage', '--kinds-threshold', '0')).code).toBe(
      0,
    );
  });
});
