import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
      stderr: 'portcullis: Say whose rules: --key, --database or --rules.\n',
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
