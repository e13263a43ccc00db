// `portcullis policy test` as a process of its own, over real files and a real database.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RULE_TYPES, SCOPES } from '../../src/domain/iam-rule.ts';
import { childEnv } from '../support/network-guard-env.ts';
import { type CommandLine, createCommandLine, jsonOf, type Outcome } from './command-line.ts';

const launcher = fileURLToPath(new URL('../../scripts/portcullis.js', import.meta.url));

/** Every rule type in every scope. */
const TOTAL = SCOPES.length * RULE_TYPES.length;
/** A percentage that one of them reaches. */
const ONE_TYPE = String(Math.floor(100 / TOTAL));

let portcullis: CommandLine;
beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const fixture = (
  name: string,
  expectation = '{ model: sandbox-paid, deny: key deny_models, rules: no-paid }',
): string =>
  `name: ${name}
given:
  catalog: real
  keys: { First gateway key: { rules: { no-paid: { deny_models: [sandbox-paid] } } } }
requests: { model: [sandbox-paid, sandbox-free] }
expect:
  - ${expectation}
  - { model: sandbox-free, permit: all }
`;

const FAILING = '{ model: sandbox-paid, permit: all }';

/** Writes fixtures below the folder in which the commands run. */
function write(file: string, text: string): void {
  const place = path.join(portcullis.folder, file);
  mkdirSync(path.dirname(place), { recursive: true });
  writeFileSync(place, text);
}

const test = (...args: string[]): Promise<Outcome> => portcullis.run('policy', 'test', ...args);
const lastLine = ({ stderr }: Outcome): string | undefined => stderr.trimEnd().split('\n').at(-1);

describe('portcullis policy test', () => {
  it('runs what lies in the default folders, and says so when there is none', async () => {
    const none = await test();
    expect([none.code, none.stdout, none.stderr]).toEqual([
      2,
      '',
      'portcullis: There is neither test/policy/cases nor policy/cases here: name a path.\n',
    ]);
    write('policy/cases/paid.yaml', fixture('No paid model'));
    const { code, stdout, stderr } = await test();
    rmSync(path.join(portcullis.folder, 'policy'), { recursive: true });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^Testing policy\/cases\.\nok {6}No paid model {2}policy\/cases\/paid\.yaml:1:1\n\n1 fixture: 1 passed; 2 requests \(policy [0-9a-f]{12}\)\n$/,
    );
  });

  it('fails with 1 when a request fails, and says what was expected and what came', async () => {
    write('a.yaml', fixture('Paid', FAILING));
    const failed = await test('a.yaml');
    expect([failed.code, failed.stderr]).toEqual([1, 'portcullis: 1 fixture failed.\n']);
    expect(failed.stdout.split('\n').slice(0, 4)).toEqual([
      'FAILED  Paid  a.yaml:1:1',
      '        model=sandbox-paid  a.yaml:7:5',
      '          expected  permit sandbox/sandbox-paid',
      '          got       deny key deny_models (Access denied: model not allowed: sandbox-paid is denied by rule no-paid.)',
    ]);
  });

  it('warns of a name in a rule that the catalogue does not have, and of what was probably meant', async () => {
    write('a.yaml', fixture('Paid').replace('[sandbox-paid] }', '[sandbox-paid, sandbox-piad] }'));
    const { code, stderr } = await test('a.yaml');
    const warning = '"sandbox-piad" is not the name of a model in the catalogue; did you mean `sandbox-paid`?';
    expect([code, stderr]).toEqual([0, `a.yaml:4:41: warning: ${warning}\n`]);
    const { line, message } = Object(jsonOf({ ...(await test('a.yaml', '--json')), stderr: '' })).fixtures[0]
      .warnings[0];
    expect([line, message]).toEqual([4, warning]);
  });

  it('runs nothing, with 2, when a fixture makes no sense', async () => {
    write('bad/a.yaml', fixture('Fine'));
    write('bad/b.yaml', fixture('Bad', '{ model: sandbox-paid, deny: any, rules: no-piad }'));
    write('bad/c.yaml', fixture('Worse').replace('expect:', 'expects:'));
    expect(await test('bad')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'bad/b.yaml:7:39: There is no active rule "no-piad".\n' +
        'bad/c.yaml:6:1: /expects is not a known field; did you mean `expect`?\n' +
        'portcullis: Nothing was run: 2 faults in fixtures.\n',
    });
  });

  it('is wrong usage without a fixture, a path that is there, or a sensible percentage', async () => {
    mkdirSync(path.join(portcullis.folder, 'empty'), { recursive: true });
    write('a.yaml', fixture('Paid'));
    const lines: [number | null, string | undefined][] = [];
    for (const args of [
      ['empty'],
      ['nowhere.yaml'],
      ['a.yaml', '--filter', 'nothing of that name'],
      ['a.yaml', '--threshold', '50'],
      ['a.yaml', '--coverage', '--threshold', '101'],
      ['a.yaml', '--json', '--junit'],
    ]) {
      const outcome = await test(...args);
      lines.push([outcome.code, lastLine(outcome)]);
    }
    expect(lines).toEqual([
      [2, 'portcullis: No fixture was found.'],
      [2, 'portcullis: There is no file or folder nowhere.yaml.'],
      [2, 'portcullis: No fixture was found.'],
      [2, 'portcullis: A threshold goes with --coverage.'],
      [2, expect.stringContaining('It must be a percentage from 0 to 100.')],
      [2, expect.stringContaining("'--json' cannot be used with option '--junit'")],
    ]);
  });

  it('prints JSON and JUnit XML, and only that', async () => {
    write('a.yaml', fixture('Paid'));
    expect(jsonOf(await test('a.yaml', '--json'))).toMatchObject({ passed: true, fixtures: [{ name: 'Paid' }] });
    const { code, stdout } = await test('a.yaml', '--junit');
    expect([code, stdout.split('\n')[1]]).toEqual([
      0,
      expect.stringMatching(/^<testsuites tests="2" failures="0" errors="0" skipped="0" time="\d+\.\d{6}">$/),
    ]);
    write('a.yaml', fixture('Paid', FAILING));
    const failed = await test('a.yaml', '--json');
    expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([1, { passed: false }]);
  });

  it('writes JUnit XML of malformed fixtures and of too little coverage as well', async () => {
    write('a.yaml', fixture('Bad', '{ model: sandbox-paid, deny: any, rules: no-piad }'));
    const bad = await test('a.yaml', '--junit');
    expect([bad.code, bad.stdout.split('\n').slice(2, 5)]).toEqual([
      2,
      [
        '  <testsuite name="Fixtures that make no sense" tests="1" failures="0" errors="1" skipped="0" time="0.000000">',
        '    <testcase classname="Fixtures that make no sense" name="a.yaml:7:39" file="a.yaml" line="7" time="0.000000">',
        '      <error message="There is no active rule &quot;no-piad&quot;."/>',
      ],
    ]);
    write('a.yaml', fixture('Paid').replace('rules: {', 'rules: { idle: { deny_providers: [nobody] },'));
    const idle = await test('a.yaml', '--junit', '--coverage', '--kinds-threshold', ONE_TYPE);
    expect([
      idle.code,
      idle.stdout.slice(idle.stdout.indexOf('<testsuite name="Coverage"')).split('\n').slice(0, 5),
    ]).toEqual([
      1,
      [
        '<testsuite name="Coverage" tests="2" failures="1" errors="0" skipped="0" time="0.000000">',
        '    <testcase classname="Coverage" name="rules" time="0.000000">',
        '      <failure message="Fewer than 100 % of the rules are covered.&#10;idle (key First gateway key, deny_providers)  a.yaml:4:41"/>',
        '    </testcase>',
        '    <testcase classname="Coverage" name="rule types by scope" time="0.000000"/>',
      ],
    ]);
  });

  it('runs 3,000 fixtures on the real catalogue in a heap of 200 MB', async () => {
    for (let file = 0; file < 30; file += 1) {
      const documents = Array.from({ length: 100 }, (_, index) => fixture(`Number ${100 * file + index}`));
      write(`many/${file}.yaml`, documents.join('---\n'));
    }
    const heap = { NODE_OPTIONS: '--max-old-space-size=200' };
    const { code, stdout } = await portcullis.runWith(heap, 'policy', 'test', 'many');
    rmSync(path.join(portcullis.folder, 'many'), { recursive: true });
    expect([code, stdout]).toEqual([0, expect.stringContaining('3000 fixtures: 3000 passed; 6000 requests')]);
  }, 120_000);

  it('fails with 1 when too little is covered, by the thresholds that are asked for', async () => {
    write('a.yaml', fixture('Paid').replace('rules: {', 'rules: { idle: { deny_providers: [nobody] },'));
    const all = await test('a.yaml', '--coverage');
    expect([all.code, lastLine(all)]).toEqual([
      1,
      'portcullis: Fewer than 100 % of the rules are covered. Fewer than 100 % of the rule types by scope are covered.',
    ]);
    expect(all.stdout).toContain('not covered: idle (key First gateway key, deny_providers)  a.yaml:4:');
    const half = await test('a.yaml', '--coverage', '--threshold', '50');
    expect([half.code, lastLine(half)]).toEqual([
      1,
      'portcullis: Fewer than 50 % of the rule types by scope are covered.',
    ]);
    expect((await test('a.yaml', '--coverage', '--threshold', '50', '--kinds-threshold', ONE_TYPE)).code).toBe(0);
  });

  it('writes in colour only where colours are asked for or shown', async () => {
    write('a.yaml', fixture('Paid'));
    const plain = await test('a.yaml');
    const coloured = await portcullis.runWith({ FORCE_COLOR: '1' }, 'policy', 'test', 'a.yaml');
    expect([plain.stdout.includes('\u001b['), coloured.stdout.includes('\u001b[')]).toEqual([false, true]);
  });

  it('tests the rules of a database as they are now, also while a server has it open', async () => {
    write('a.yaml', fixture('Paid'));
    const live = ['a.yaml', '--database', '.', '--coverage', '--kinds-threshold', '0'];
    const before = await test(...live);
    expect([before.code, lastLine(before)]).toEqual([1, 'portcullis: 1 fixture failed.']);
    const add = ['rules', 'add', '--key', 'First gateway key', '--json'];
    const { rule } = Object(jsonOf(await portcullis.run(...add, 'deny_models', 'sandbox-paid')));
    expect((await test(...live)).code).toBe(0);
    await portcullis.run(...add, 'deny_models', 'withdrawn-1');
    const uncovered = await test(...live);
    expect([uncovered.code, lastLine(uncovered)]).toEqual([
      1,
      'portcullis: Fewer than 100 % of the rules are covered.',
    ]);
    await portcullis.run('rules', 'remove', rule.id);
    expect((await test(...live)).code).toBe(1);
  });

  it('tests the rules of an exported document', async () => {
    write('a.yaml', fixture('Paid'));
    const world = (...rules: object[]) => ({
      organizations: [
        {
          id: 'org_1',
          members: [{ id: 'mem_1' }],
          keys: [{ id: 'key_1', memberId: 'mem_1', description: 'First gateway key', rules }],
        },
      ],
    });
    const rule = { id: 'rule_1', ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } };
    write('export.json', JSON.stringify(world(rule)));
    expect((await test('a.yaml', '--rules', 'export.json')).code).toBe(0);
    write('export.json', JSON.stringify(world()));
    expect((await test('a.yaml', '--rules', 'export.json')).code).toBe(1);
    write('export.json', JSON.stringify(world({ ...rule, ruleType: 'deny_all' }), null, 1));
    const bad = await test('a.yaml', '--rules', 'export.json');
    expect([bad.code, bad.stderr.split('\n')[0]]).toEqual([2, expect.stringMatching(/^export\.json:18:8: /)]);
  });

  it('runs again when a file changes, and ends cleanly on Ctrl-C', async () => {
    const shared = 'keys: { First gateway key: { rules: { no-paid: { deny_models: [sandbox-paid] } } } }\n';
    const text = fixture('Watched').replace(/ {2}keys: .*/, '  include: ../beside/keys.yaml');
    write('watched/a.yaml', text);
    write('beside/keys.yaml', shared);
    const child = spawn(process.execPath, [launcher, 'policy', 'test', 'watched', '--watch'], {
      cwd: portcullis.folder,
      env: childEnv(),
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (piece: string) => {
        output += piece;
      });
    }
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    /** Waits for a whole run, and forgets it. */
    const run = async (sign: string): Promise<void> => {
      await expect.poll(() => output.includes('Ctrl-C ends.') && output.includes(sign), { timeout: 20_000 }).toBe(true);
      output = '';
    };
    try {
      await run('1 fixture: 1 passed');
      write('watched/a.yaml', text.replace('deny: key deny_models', 'deny: member deny_models'));
      await run('1 fixture failed.');
      write('watched/a.yaml', text.replace('expect:', 'expects:'));
      await run('watched/a.yaml:6:1: /expects is not a known field; did you mean `expect`?');
      write('watched/a.yaml', text);
      await run('1 fixture: 1 passed');
      write('beside/keys.yaml', shared.replace('no-paid', 'renamed'));
      await run('There is no active rule "no-paid".');
    } finally {
      child.kill('SIGINT');
    }
    expect(await ended).toBe(0);
  });

  it('passes on the cases of this repository, every rule and every rule type covered', async () => {
    const cases = fileURLToPath(new URL('../policy/cases', import.meta.url));
    const { code, stdout } = await test(cases, '--coverage');
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${TOTAL} of ${TOTAL} (100 %)`)]);
  });
});
