import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstRun } from '../../src/admin/first-run.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { progressBar } from '../../src/cli/progress.ts';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/data-dir.ts';
import { createStore } from '../../src/store/store.ts';
import { readWorld } from '../../src/workbench/world.ts';
import { worldDocument } from '../../src/workbench/world-document.ts';
import { type CommandLine, createCommandLine } from './command-line.ts';

const KEY = 'First gateway key';
const MEMBER = 'owner@localhost';

let cli: CommandLine;
let denied: string;
let exported: string;

const idOf = (text: string): string => /rule_[0-9a-f]{32}/.exec(text)?.[0] ?? '';

beforeAll(async () => {
  cli = await createCommandLine();
  exported = path.join(cli.folder, 'export.json');
  denied = idOf((await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'sandbox-p*')).stdout);
  const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
  const world = await cli.store.read((db) => readWorld(db, { catalog, servedProviders: new Set() }));
  writeFileSync(exported, JSON.stringify(worldDocument(world)));
});
afterAll(() => cli.close());

const json = async (...args: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await cli.run(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};

const draftFile = (name: string, text: string): string => {
  const file = path.join(cli.folder, name);
  writeFileSync(file, text);
  return file;
};

describe('portcullis access', () => {
  it('prints what a key reaches, and with --denied what it does not', async () => {
    const { code, stdout } = await cli.run('access', KEY, '--denied');
    expect(code).toBe(0);
    expect(stdout).toContain('(First gateway key) reaches 3 models by 3 mappings');
    expect(stdout).toMatch(/^permitted +- +any$/m);
    expect(stdout).toMatch(/^sandbox-free +sandbox +-$/m);
    expect(stdout).toMatch(new RegExp(`^sandbox-paid +sandbox +${denied}$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^${denied} +key +deny_models$`, 'm'));
  });

  it('prints what a member reaches by a key without rules', async () => {
    const mappings = ['faulty', 'free', 'paid', 'slow'].map((name) => `sandbox-${name}`);
    expect(await json('access', MEMBER)).toMatchObject({
      holder: { scope: 'member', name: MEMBER },
      reached: mappings.map((model) => ({ model, provider: 'sandbox', ruleIds: [] })),
      denied: [],
    });
  });

  it('prints how much everybody reaches', async () => {
    expect(await json('access', '--all')).toMatchObject({
      holders: [
        { scope: 'key', name: KEY, mappings: ['faulty', 'free', 'slow'].map((name) => `sandbox/sandbox-${name}`) },
        { scope: 'member', name: MEMBER },
      ],
    });
  });

  it.each([
    [[], 2, 'portcullis: Name a key or a member, or say --all.\n'],
    [[KEY, '--all'], 2, 'portcullis: Name a key or a member, or say --all.\n'],
    [['nobody'], 1, 'portcullis: There is no key with the id, masked token or description "nobody".\n'],
    [['nobody@localhost'], 1, 'portcullis: There is no member nobody@localhost.\n'],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await cli.run('access', ...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('portcullis policy diff', () => {
  it('finds nothing between a database and its export', async () => {
    expect(await json('policy', 'diff', exported)).toEqual({ gained: 0, lost: 0, flips: [] });
  });

  it('prints exactly what a draft would change, and fails where access is new, if asked to', async () => {
    const draft = draftFile('remove.yaml', `rules:\n  - { id: ${denied}, remove: true }\n`);
    const expected = expect.stringMatching(
      new RegExp(
        `^newly permitted from any, by removed key rule ${denied} \\(deny_models\\)\n  key_[0-9a-f]{32} \\(First gateway key\\)\n    \\+ sandbox/sandbox-paid\n\n1 newly permitted, 0 no longer permitted`,
      ),
    );
    expect(await cli.run('policy', 'diff', '--draft', draft)).toEqual({ code: 0, stdout: expected, stderr: '' });
    expect(await cli.run('policy', 'diff', '--draft', draft, '--fail-on', 'new-access')).toEqual({
      code: 1,
      stdout: expected,
      stderr: 'portcullis: 1 newly permitted.\n',
    });
  });

  it('does not fail where access is lost only', async () => {
    const draft = draftFile(
      'deny.yaml',
      'rules:\n  - organization: true\n    ruleType: deny_providers\n    ruleValue: { providers: [sandbox] }\n',
    );
    const { code, stdout } = await cli.run('policy', 'diff', '--draft', draft, '--fail-on', 'new-access');
    expect(code).toBe(0);
    expect(stdout).toContain('0 newly permitted, 7 no longer permitted');
  });

  it('compares two databases by their folders: here their keys are others', async () => {
    const other = path.join(cli.folder, 'other');
    mkdirSync(other);
    const store = createStore({ path: databasePath(other), clock: systemClock, create: true });
    await store.write((db, now) => firstRun(db, cli.secrets.peppers[0], now));
    store.close();
    expect(await json('policy', 'diff', cli.folder, other)).toMatchObject({
      gained: 8,
      lost: 7,
      flips: [
        { change: 'lost', reason: 'holder removed' },
        { change: 'lost', reason: 'holder removed' },
        { change: 'gained', reason: 'holder added' },
      ],
    });
  });

  it.each([
    [
      'a draft',
      'rules:\n  - key: First gateway key\n    ruleType: deny_models\n    ruleValue:\n      models: [a*b]\n',
      '5:16',
    ],
    ['its shape', '- key: First gateway key\n', '1:1'],
    ['YAML', 'rules:\n  - [\n', '3:1'],
    ['a rule id', 'rules:\n  - id: rule_9\n    remove: true\n', '2:5'],
  ])('names file and line of a fault in %s', async (_, text, place) => {
    const file = draftFile('wrong.yaml', text);
    const { code, stdout, stderr } = await cli.run('policy', 'diff', '--draft', file);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^portcullis: ${file}:${place}: [^\n]+\n$`));
  });

  it.each([
    [[], 2, 'portcullis: Name a source to compare with, or a --draft.\n'],
    [['nowhere'], 1, 'portcullis: There is neither a folder nor a file nowhere.\n'],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await cli.run('policy', 'diff', ...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('portcullis policy lint', () => {
  it('prints what it finds, and fails if asked to', async () => {
    const added = idOf((await cli.run('rules', 'add', '--member', MEMBER, 'deny_models', 'gpt-9')).stdout);
    expect(await json('policy', 'lint')).toMatchObject({
      findings: [{ code: 'unknown-model' }, { code: 'dead-rule' }, { code: 'open-to-future-models' }],
    });
    const strict = await cli.run('policy', 'lint', '--strict');
    expect(strict.code).toBe(1);
    expect(strict.stdout).toMatch(new RegExp(`^dead-rule +The rule ${added}: matches nothing that there is.$`, 'm'));
    expect(strict.stderr).toBe('portcullis: 3 findings.\n');
    await cli.run('rules', 'remove', added);
  });

  it('looks at an export too', async () => {
    expect(await json('policy', 'lint', exported)).toMatchObject({ findings: [{ code: 'open-to-future-models' }] });
  });
});

describe('portcullis policy explain', () => {
  const explain = (...args: string[]) => cli.run('policy', 'explain', '--key', KEY, ...args);

  it('says why, without which rules not, and what else', async () => {
    const { code, stdout } = await explain('--model', 'sandbox-paid', '--address', '::ffff:192.0.2.1');
    expect(code).toBe(0);
    expect(stdout).toContain('chat with sandbox-paid from 192.0.2.1: deny');
    expect(stdout).toContain(`Access denied: model not allowed: sandbox-p* is denied by rule ${denied}.`);
    expect(stdout).toMatch(new RegExp(`^sandbox/sandbox-paid +key +deny_models +sandbox-p\\* +${denied}$`, 'm'));
    expect(stdout).toContain(`It would be permitted without ${denied} (key deny_models).`);
    expect(stdout).toContain('Permitted instead: sandbox/sandbox-free (same family).');
  });

  it('says what a permitted request violates: nothing', async () => {
    expect(await json('policy', 'explain', '--key', KEY, '--model', 'sandbox-free')).toMatchObject({
      outcome: 'permit',
      violations: [],
      flips: { sets: [], exhaustive: true },
    });
  });

  it.each([
    [['--model', 'gpt-9'], 1, 'portcullis: The model `gpt-9` does not exist.\n'],
    [
      ['--model', 'sandbox-free', '--address', '10.0.0.0/8'],
      1,
      'portcullis: /address ("10.0.0.0/8") is not an IPv4 or IPv6 address.\n',
    ],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await explain(...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('the progress bar', () => {
  function drawn(isTTY: boolean): string {
    let text = '';
    const bar = progressBar('judging', {
      isTTY,
      write: (piece: string | Uint8Array) => {
        text += piece;
        return true;
      },
    });
    for (const done of [1, 2, 4]) bar.show(done, 4);
    bar.end();
    return text;
  }

  it('is drawn on a terminal, in place, and cleared at the end', () => {
    const line = (text: string) => `\r\u001b[2K${text}`;
    expect(drawn(true)).toBe(
      [line(`judging ${'█'.repeat(8)}${'░'.repeat(22)} 1/4`), line(`judging ${'█'.repeat(30)} 4/4`), line('')].join(''),
    );
  });

  it('is not drawn elsewhere', () => {
    expect(drawn(false)).toBe('');
  });
});
