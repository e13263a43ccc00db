// Every list of the command line fits a terminal of 120 columns, with names, addresses and amounts as teams have them.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idLike } from '../../src/domain/id.ts';
import { build } from '../../src/store/db/sql.ts';
import { keepRefused } from '../../src/store/ledger/refused-requests.ts';
import { newDecision } from '../store/fixture.ts';
import { childEnv } from '../support/network-guard-env.ts';
import { insertCall, storedRefusal } from '../support/stored-calls.ts';
import { type CommandLine, createCommandLine, type Outcome } from './command-line.ts';

const WIDTH = 120;
const TEXT = 'Nightly evaluation of answers!'; // 30 characters
const EMAIL = 'maximiliane@laboratory.eu'; // 25
const PROJECT = 'Research and development team2';
const MODEL = 'claude-sonnet-4-5-20250929-thinking';
const SECRET = 'sk-0123456789abcdefghijklmnop';

/** Makes standard output a terminal of that width. */
const TERMINAL = `data:text/javascript,Object.defineProperties(process.stdout,{isTTY:{value:true},columns:{value:${WIDTH}}})`;

let portcullis: CommandLine;
/** Of the call, and of its decision. */
let call: string;
let refused: string;

async function run(...args: string[]): Promise<Outcome> {
  const nodeOptions = `${childEnv().NODE_OPTIONS} --import=${TERMINAL}`;
  const outcome = await portcullis.runWith({ NODE_OPTIONS: nodeOptions }, ...args);
  return { ...outcome, stdout: stripVTControlCharacters(outcome.stdout) };
}

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args);
  if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
  return stdout;
}

const limits = ['--limit', '1000', '--period-limit', '100', '--period', 'calendar-month', '--rpm', '60'];
const budget = limits.slice(0, 6);

beforeAll(async () => {
  portcullis = await createCommandLine();
  await done('members', 'add', EMAIL, '--role', 'developer', '--name', TEXT);
  await done('members', 'update', EMAIL, '--rpm', '60', '--tpm', '100000');
  await done('members', 'invite', `new.${EMAIL}`, '--role', 'developer');
  await done('projects', 'create', PROJECT, '--caching', 'on', '--rpm', '600', '--tpm', '1000000');
  const made = ['--description', TEXT, '--owner', EMAIL, '--project', PROJECT, '--ttl', '90days', '--tags', 'team:a'];
  await done('keys', 'create', ...made, ...limits);
  await done('keys', 'create', '--owner', EMAIL, '--project', 'Default');
  await done('groups', 'create', 'evaluation-and-research', '--description', TEXT);
  await done('rules', 'add', '--key', TEXT, 'deny_models', MODEL, 'gpt-5-mini', 'gpt-5-nano', '--description', TEXT);
  await done('rules', 'add', '--member', EMAIL, 'deny_providers', 'openai', '--description', TEXT, '--mode', 'report');
  await done('rules', 'add', '--organization', 'allow_providers', 'sandbox', '--description', TEXT);
  await done('budgets', 'set', '--member', EMAIL, ...budget);
  await done('budgets', 'set', '--project', PROJECT, ...budget);
  await portcullis.runWith(
    { SECRET },
    'provider-keys',
    'add',
    'openai',
    '--label',
    TEXT,
    '--token-env',
    'SECRET',
    '--project',
    PROJECT,
  );
  await done('custom-providers', 'add', 'laboratory', '--base-url', 'https://models.laboratory.example.com/serving/v1');
  const can = ['--supports', 'streaming,vision,tools,parallel-tool-calls,reasoning,json-output,structured-outputs'];
  await done(
    'custom-models',
    'add',
    'laboratory',
    MODEL,
    '--price',
    'prompt=0.59',
    '--price',
    'completion=12.79',
    ...can,
  );
  await done('aliases', 'set', 'evaluation', 'claude-haiku-4-5', 'gpt-5-mini', 'gpt-5-nano', '--project', PROJECT);
  await done('tags', 'set', 'anthropic/claude-haiku-4-5', 'approved', 'region-eu', 'reviewed-by-the-board-of-research');
  await done(
    'organizations',
    'update',
    '--name',
    TEXT,
    '--rpm',
    '6000',
    '--new-key-limit',
    '25',
    '--new-key-ttl',
    '90days',
  );
  await done('master-keys', 'create', '--description', TEXT);
  const folder = path.join(portcullis.folder, 'rules');
  mkdirSync(folder);
  const stated = {
    ruleType: 'deny_models',
    ruleValue: { models: ['sandbox-paid', 'gpt-5-mini', 'claude-haiku-4-5'] },
    description: TEXT,
  };
  writeFileSync(
    path.join(folder, 'rules.yaml'),
    JSON.stringify({ keys: { [TEXT]: { rules: { 'no-expensive-models': stated } } } }),
  );

  call = await portcullis.store.write((db) => {
    const key = db.get(
      build.selectFrom('keys').selectAll().where('description', '=', TEXT).where('kind', '=', 'regular'),
    );
    if (key === undefined) throw new Error('the key is not there');
    const { id: keyId, organizationId, projectId, createdBy: memberId } = key;
    const whose = { organizationId, projectId: projectId ?? '', keyId, memberId: memberId ?? '' };
    const row = { ...whose, requestedModel: `anthropic/${MODEL}`, providerId: 'anthropic', modelId: MODEL };
    const spent = {
      cost: 12_345_678_901n,
      promptTokens: 123_456,
      completionTokens: 12_345,
      clientAddress: '2001:db8::1234',
    };
    const program = { requestedModel: MODEL, userAgent: 'openai-python/1.99.9', clientAddress: '192.0.2.111' };
    const request = storedRefusal({ ...whose, ...program });
    refused = request.id;
    keepRefused(db, [request]);
    const denied = newDecision({ outcome: 'deny', reasonJson: JSON.stringify({ type: 'deny_models' }) });
    insertCall(db, Date.now() - 2000, { ...row, state: 'denied', statusCode: 403 }, denied);
    return insertCall(db, Date.now() - 1000, { ...row, ...spent, tookMs: 123_456 }, newDecision()).id;
  });
}, 240_000);
afterAll(() => portcullis.close());

const LISTS: readonly (readonly string[])[] = [
  ...['keys', 'rules', 'members', 'projects', 'groups', 'budgets', 'aliases', 'provider-keys', 'custom-providers'],
  ...['custom-models', 'tags', 'calls', 'decisions', 'requests', 'audit', 'organizations', 'master-keys', 'secrets'],
].map((name) => [name, 'list']);

const OTHERS: readonly (readonly string[])[] = [
  ['members', 'invitations'],
  ['groups', 'show', 'evaluation-and-research'],
  ['usage', '--group-by', 'member,model,key'],
  ['usage', '--group-by', 'member,model,project,key'],
  ['models'],
  ['models', '--mapped'],
  ['models', '--tags'],
  ['access', '--all'],
  ['access', TEXT, '--without-credential', '--denied'],
  ['access', '--model', 'sandbox-paid'],
  ['policy', 'plan', 'rules'],
];

describe('a list of the command line', () => {
  it.each([...LISTS, ...OTHERS].map((args) => ({ command: args.join(' '), args })))(
    'fits 120 columns: $command',
    async ({ args }) => {
      const { code, stdout, stderr } = await run(...args);
      expect([code, stderr]).toEqual([0, '']);
      // Sentences next to a table wrap in a terminal as text does.
      const rows = stdout.split('\n').filter((line) => !line.endsWith('.') && !line.startsWith('no longer permitted'));
      expect(rows.filter((line) => line.length > WIDTH)).toEqual([]);
      // An id is whole, or is not there.
      expect(
        stdout.match(/\b(?:key|mem|rule|proj|grp|inv|org|mkey|call|dec|req|pkey|prov|model|tags)_[0-9a-f]{1,31}\b/g),
      ).toBeNull();
    },
  );

  it('shows the ids of its rows, whole, and times without fractions of seconds', async () => {
    const calls = await done('calls', 'list');
    expect(calls).toContain(call);
    expect(calls).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}call_/m);
    expect(await done('decisions', 'list')).toContain(idLike(call, 'dec'));
    expect(await done('requests', 'list')).toContain(refused);
    for (const [name, prefix] of [
      ...[
        ['keys', 'key'],
        ['rules', 'rule'],
        ['members', 'mem'],
        ['projects', 'proj'],
        ['groups', 'grp'],
      ],
      ...[
        ['provider-keys', 'pkey'],
        ['custom-models', 'model'],
        ['master-keys', 'mkey'],
        ['organizations', 'org'],
      ],
    ]) {
      expect(await done(`${name}`, 'list')).toMatch(new RegExp(` ?${prefix}_[0-9a-f]{32} `));
    }
  });

  it('shows all columns, whole, with --wide', async () => {
    const [titles = '', ...rows] = (await done('keys', 'list', '--wide')).split('\n');
    expect(titles.split(/ {2,}/)).toEqual([
      ...['DESCRIPTION', 'ID', 'OWNER', 'STATE', 'USD SPENT', 'USD LIMIT'],
      ...['PROJECT', 'TOKEN', 'USD SPENT IN WINDOW', 'EXPIRES', 'LAST USED', 'PER MINUTE', 'TAGS'],
    ]);
    expect(rows.some((row) => row.startsWith(TEXT) && row.includes(` ${EMAIL} `) && row.includes(PROJECT))).toBe(true);
    expect(await done('calls', 'list', '--wide')).toContain(`anthropic/${MODEL}`);
    expect(await done('rules', 'list', '--wide')).toMatch(
      new RegExp(`${MODEL}, gpt-5-mini, gpt-5-nano .* key_[0-9a-f]{32}`),
    );
  });

  it('shortens the widest free text with … and leaves amounts whole', async () => {
    const keys = await done('keys', 'list');
    expect(keys).toMatch(/^Nightly .*… +key_[0-9a-f]{32} .*1000 in all, 100 per calendar month$/m);
  });
});
