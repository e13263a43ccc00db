import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { formatTime, systemClock } from '../../src/domain/time.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { readWorld } from '../../src/workbench/world/world.ts';
import { logDecision } from '../support/logged-decisions.ts';
import { archiveOf, bundleFiles, compiled } from '../support/policy-bundles.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;
let rule: string;
/** Of the decisions, oldest first: three permitted calls, one denied. */
let decisions: readonly string[];

const REVISION = createPdp().bundleDigest.slice(0, 12);
const HOUR = 3_600_000;
const NOW = Date.now();
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

beforeEach(async () => {
  portcullis = await createCommandLine();
  const added = await portcullis.run(
    ...[
      'rules',
      'add',
      '--key',
      'First gateway key',
      'deny_models',
      'sandbox-paid',
      '--description',
      'no paid',
      '--json',
    ],
  );
  rule = JSON.parse(added.stdout).rule.id;
  const { organizationId } = portcullis.first;
  decisions = await portcullis.store.write((db) => {
    const world = readWorld(db, { catalog, servedProviders: new Set(['sandbox']) }, organizationId);
    const [key] = world.keys.values();
    if (key === undefined) throw new Error('there is no key');
    return ['sandbox-free', 'sandbox-slow', 'sandbox-slow', 'sandbox-paid'].map((model, place) =>
      logDecision(db, world, { keyId: key.id, model, time: NOW - (4 - place) * HOUR }),
    );
  });
});
afterEach(() => portcullis.close());

/** Lines of tables and sums, cells apart. */
async function replay(...args: string[]): Promise<{ code: number | null; stderr: string; lines: string[][] }> {
  const { code, stdout, stderr } = await portcullis.run('replay', ...args);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
  return { code, stderr, lines };
}

const header = (decided: string, rules: string, revision = 1) => [
  expect.stringMatching(
    new RegExp(`^${decided} from 20\\S+Z to 20\\S+Z, under ${rules} \\(policy ${REVISION}\\.${revision}\\):$`),
  ),
];
const sums = (denied: number, permitted: number, unchanged: number) => [
  `${denied} newly denied, ${permitted} newly permitted, 0 with more candidates, 0 with fewer, ${unchanged} unchanged`,
];
const TITLES = ['CALLS', 'CHANGE', 'KEY', 'MEMBER', 'MODEL', 'RULES', 'FIRST DECISION'];
const WHO = ['First gateway key', 'owner@localhost'];

function draft(text: string): string {
  const file = path.join(portcullis.folder, 'draft.yaml');
  writeFileSync(file, text);
  return file;
}

it('judges under the current rules, by those of then, and by a draft', async () => {
  const nothing = { code: 0, stderr: '' };
  expect(await replay()).toEqual({
    ...nothing,
    lines: [header('4 decisions', 'the current rules'), sums(0, 0, 4)],
  });

  await portcullis.run('rules', 'remove', rule);
  expect(await replay()).toEqual({
    ...nothing,
    lines: [
      TITLES,
      ['1', 'newly permitted', ...WHO, 'sandbox-paid', `key deny_models ${rule}`, decisions[3]],
      [''],
      header('4 decisions', 'the current rules', 2),
      sums(0, 1, 3),
    ],
  });
  expect(await replay('--recorded')).toEqual({
    ...nothing,
    lines: [
      header('4 decisions', 'the rules that each of them saw', 2),
      sums(0, 0, 4),
      ['4 byte for byte as recorded, 0 different, by the same policy'],
    ],
  });

  const file = draft(
    'rules: [{ organization: true, ruleType: allow_models, ruleValue: { models: [sandbox-free, sandbox-piad] }, description: free }]',
  );
  expect(await replay('--draft', file)).toEqual({
    code: 0,
    stderr:
      'portcullis: warning: /rules/0: "sandbox-piad" is not the name of a model in the catalogue; did you mean `sandbox-paid`?\n',
    lines: [
      TITLES,
      ['2', 'newly denied', ...WHO, 'sandbox-slow', 'organization allow_models draft_1 (free)', decisions[1]],
      [''],
      header('4 decisions', 'the current rules with the draft', 2),
      sums(2, 0, 2),
    ],
  });
});

it('judges by a policy folder', async () => {
  const folder = path.join(portcullis.folder, 'rules');
  mkdirSync(folder);
  const models = '{ ruleType: allow_models, ruleValue: { models: [sandbox-free, sandbox-piad] } }';
  writeFileSync(path.join(folder, 'all.yaml'), `organization: { rules: { only-free: ${models} } }\n`);
  const { code, stderr, lines } = await replay('--folder', folder);
  expect({ code, stderr, lines }).toEqual({
    code: 0,
    stderr: expect.stringMatching(
      /^portcullis: warning: \S*all\.yaml:1:\d+: "sandbox-piad" is not the name of a model in the catalogue; did you mean `sandbox-paid`\?\n$/,
    ),
    lines: [
      TITLES,
      ['2', 'newly denied', ...WHO, 'sandbox-slow', 'organization allow_models only-free', decisions[1]],
      [''],
      header('4 decisions', 'the current rules with the folder applied'),
      sums(2, 0, 2),
    ],
  });
});

it('judges by a bundle, and says whose policy had decided', async () => {
  const file = path.join(portcullis.folder, 'next.tar.gz');
  writeFileSync(file, archiveOf({ ...bundleFiles('next'), 'policy.wasm': compiled('permit-all') }));
  expect(await replay('--bundle', file)).toEqual({
    code: 0,
    stderr: '',
    lines: [
      TITLES,
      ['1', 'newly permitted', ...WHO, 'sandbox-paid', `key deny_models ${rule} (no paid)`, decisions[3]],
      [''],
      [expect.stringMatching(/^4 decisions from .* under the current rules \(policy [0-9a-f]{12}\.1\):$/)],
      sums(0, 1, 3),
      [`4 of them had been decided by another policy, ${REVISION}`],
    ],
  });
});

it('says where a bundle was not tried in full, because a decision has no facts on record', async () => {
  const file = fileURLToPath(new URL('../fixtures/policy/examples.tar.gz', import.meta.url));
  const { code, lines, stderr } = await replay('--bundle', file, '--fail-on', 'new-denial');
  expect([code, stderr]).toEqual([1, 'portcullis: 4 decisions without facts.\n']);
  expect(lines.flat()).toContain(
    '4 without facts of the request on record: what the package custom says of facts was not tried on them',
  );
  expect((await replay('--bundle', file)).code).toBe(0);
});

it('takes some of the log, and groups by what is asked for', async () => {
  const file = draft('rules: [{ key: First gateway key, ruleType: deny_models, ruleValue: { models: [sandbox-*] } }]');
  const report = async (...args: string[]) =>
    jsonOf(await portcullis.run('replay', '--draft', file, '--json', ...args));
  const group = { change: 'denied', key: null, member: null, model: null, ruleIds: ['draft_1'] };
  expect(await report('--group-by', 'rule')).toMatchObject({
    decisions: 4,
    groups: [{ ...group, decisions: 3, examples: decisions.slice(0, 2) }],
  });
  expect(await report('--model', 'sandbox-slow')).toMatchObject({ decisions: 2 });
  expect(await report('--since', '150m')).toMatchObject({ decisions: 2 });
  const between = ['--from', formatTime(NOW - 3 * HOUR), '--to', formatTime(NOW - HOUR)];
  expect(await report(...between)).toMatchObject({ decisions: 2 });
  expect(await report('--key', 'First gateway key', '--member', 'owner@localhost')).toMatchObject({ decisions: 4 });
});

it('fails on what it is asked to fail on', async () => {
  const ended = async (...args: string[]) => {
    const { code, stderr } = await portcullis.run('replay', ...args);
    return { code, stderr };
  };
  const denies = draft('rules: [{ organization: true, ruleType: deny_models, ruleValue: { models: [sandbox-slow] } }]');
  expect(await ended('--draft', denies, '--fail-on', 'new-access')).toEqual({ code: 0, stderr: '' });
  expect(await ended('--draft', denies, '--fail-on', 'new-access', 'new-denial')).toEqual({
    code: 1,
    stderr: 'portcullis: 2 newly denied.\n',
  });
  const permits = draft(`rules: [{ id: ${rule}, remove: true }]`);
  expect(await ended('--draft', permits, '--fail-on', 'new-denial')).toEqual({ code: 0, stderr: '' });
  expect(await ended('--draft', permits, '--fail-on', 'new-access')).toEqual({
    code: 1,
    stderr: 'portcullis: 1 newly permitted.\n',
  });
  expect(await ended('--draft', permits, '--recorded')).toEqual({
    code: 2,
    stderr: "portcullis: option '--recorded' cannot be used with option '--draft <file>'\n",
  });
});

it('shows both results, and fails, where the same policy does not say the same', async () => {
  await portcullis.store.write((db) =>
    db.connection.prepare("UPDATE call_verdicts SET shadowJson = '{}' WHERE outcome = 'deny'").run(),
  );
  const { code, stderr, lines } = await replay('--recorded');
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'portcullis: 1 decision came out differently.\n' });
  expect(lines.slice(2)).toEqual([
    ['3 byte for byte as recorded, 1 different, by the same policy'],
    [''],
    [decisions[3]],
    ['recorded', expect.stringMatching(/^\{"outcome":"deny",.*"shadowJson":"\{\}"\}$/)],
    ['replayed', expect.stringMatching(/^\{"outcome":"deny",.*"shadowJson":null\}$/)],
  ]);
});
