import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstRun } from '../../src/admin/sign-in/sign-in-links.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { progressBar } from '../../src/cli/terminal/output.ts';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { createStore } from '../../src/store/store.ts';
import { activeMappings, readWorld } from '../../src/workbench/world/world.ts';
import { worldDocument } from '../../src/workbench/world/world-document.ts';
import { type CommandLine, createCommandLine, JUDGED_BY } from './command-line.ts';

const KEY = 'First gateway key';
const MEMBER = 'owner@localhost';
const PLAYGROUND = 'Playground of owner@localhost in Default';

let cli: CommandLine;
let denied: string;
let exported: string;

const SANDBOX = ['faulty', 'free', 'image-max', 'image-plus', 'moderation', 'paid', 'slow'].map(
  (name) => `sandbox-${name}`,
);
/** What the key's rule leaves. */
const REACHED = SANDBOX.filter((model) => model !== 'sandbox-paid').map((model) => `sandbox/${model}`);
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
/** Mappings of providers that nobody has a credential for. */
const OTHERS = activeMappings({ catalog }).length - SANDBOX.length;
/** Both keys. */
const OPEN = [{ code: 'open-to-future-models' }, { code: 'open-to-future-models' }];
/** A model that nobody can call, and where it could be. */
const MODEL = 'gpt-5';
const MEANT = catalog.resolve(MODEL)?.map(({ id }) => id) ?? [];
/** Those of whom a difference of access tells: the playground key has the access of its owner. */
const HOLDERS = [
  { scope: 'key', name: KEY },
  { scope: 'member', name: MEMBER },
];
const LOST = HOLDERS.length * MEANT.length;
const NOTHING = { gained: 0, lost: 0, withoutCredential: { gained: 0, lost: 0 } };
const REST = { ifEnforced: { ...NOTHING, flips: [] }, changedRules: 0, warnings: [] };
const COUNTS_ALL =
  'portcullis: note: the operator has set no provider credential, so --fail-on counts everything that the rules permit, callable or not.\n';

const idOf = (text: string): string => /rule_[0-9a-f]{32}/.exec(text)?.[0] ?? '';

beforeAll(async () => {
  cli = await createCommandLine();
  exported = path.join(cli.folder, 'export.json');
  denied = idOf(
    (await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'sandbox-p*', '--description', 'No paid')).stdout,
  );
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
    expect(stdout).toContain('(First gateway key) reaches 6 models through 6 mappings');
    expect(stdout).toMatch(
      /^\d+ more mappings are permitted, but there is no credential to call them: --without-credential lists them\.$/m,
    );
    expect(stdout).not.toContain('openai');
    expect(stdout).toMatch(/^permitted +- +any$/m);
    expect(stdout).toMatch(/^sandbox-free +sandbox +-$/m);
    expect(stdout).toMatch(new RegExp(`^sandbox-paid +sandbox +${denied} \\(No paid\\)$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^${denied} +key +deny_models +No paid$`, 'm'));
  });

  it('prints what a member reaches by a key without rules', async () => {
    expect(await json('access', MEMBER)).toMatchObject({
      holder: { scope: 'member', name: MEMBER },
      reached: SANDBOX.map((model) => ({ model, provider: 'sandbox', credential: true, ruleIds: [] })),
      denied: [],
      withoutCredential: OTHERS,
    });
  });

  it('prints how much everyone reaches', async () => {
    expect(await json('access', '--all')).toMatchObject({
      holders: [
        { scope: 'key', name: KEY, mappings: REACHED, withoutCredential: OTHERS },
        { scope: 'key', name: PLAYGROUND },
        { scope: 'member', name: MEMBER },
      ],
    });
    const { stdout } = await cli.run('access', '--all');
    expect(stdout).toMatch(/^NAME +ID +MODELS +MAPPINGS +NO CREDENTIAL +FROM ADDRESS$/m);
    expect(stdout).toMatch(new RegExp(`^First gateway key +key_[0-9a-f]{32} +6 +6 +${OTHERS} +any$`, 'm'));
  });

  it('lists, if asked to, what the rules permit and nobody can call', async () => {
    const { stdout } = await cli.run('access', KEY, '--without-credential');
    expect(stdout).toContain('reaches 6 models through 6 mappings');
    expect(stdout).toContain(`${OTHERS} more mappings are permitted, but there is no credential to call them.\n`);
    expect(stdout).toMatch(/^MODEL +PROVIDER +CALLABLE +ALLOWED BY\nsandbox-faulty +sandbox +yes +-$/m);
    expect(stdout).toMatch(/^gpt-5 +openai +no credential +-$/m);
    const overview = await json('access', '--all', '--without-credential');
    expect(overview).toMatchObject({
      holders: [
        { mappings: REACHED, mappingsWithoutCredential: expect.arrayContaining(['openai/gpt-5']) },
        { scope: 'key' },
        { scope: 'member' },
      ],
    });
  });

  it('prints who reaches a model, by which providers and from where', async () => {
    expect(await json('access', '--model', 'sandbox-paid')).toEqual({
      model: 'sandbox-paid',
      holders: [
        expect.objectContaining({ scope: 'key', name: PLAYGROUND, mappings: ['sandbox/sandbox-paid'] }),
        expect.objectContaining({ scope: 'member', name: MEMBER, mappings: ['sandbox/sandbox-paid'] }),
      ],
    });
    const { stdout } = await cli.run('access', '--model', 'sandbox/sandbox-free');
    expect(stdout).toMatch(/^NAME +ID +SCOPE +PROVIDERS +FROM ADDRESS$/m);
    expect(stdout).toMatch(/^First gateway key +key_[0-9a-f]{32} +key +sandbox +any$/m);
    expect(stdout).toContain('\n2 keys and 1 member (with a key without rules) reach sandbox/sandbox-free.\n');
  });

  it('tells a model that nobody can call from one that there is not', async () => {
    expect((await cli.run('access', '--model', MODEL)).stdout).toBe(
      `No key and no member reaches ${MODEL}. --without-credential also counts providers that cannot be called.\n${JUDGED_BY}`,
    );
    const { stdout } = await cli.run('access', '--model', MODEL, '--without-credential');
    expect(stdout).toContain('openai (no credential)');
    expect(await cli.run('access', '--model', 'gpt-none')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: The model `gpt-none` does not exist.\n',
    });
    expect((await cli.run('access', KEY, '--model', MODEL)).code).toBe(2);
  });

  it('counts a credential of its own environment on request', async () => {
    const { stdout } = await cli.runWith({ OPENAI_API_KEY: 'sk-none' }, 'access', KEY, '--against', 'env');
    expect(stdout).toMatch(/^gpt-5 +openai +-$/m);
    expect(stdout).not.toContain('anthropic');
  });

  it.each([
    [[], 2, 'portcullis: Name a key or a member, or pass --all or --model.\n'],
    [[KEY, '--all'], 2, 'portcullis: Name a key or a member, or pass --all or --model.\n'],
    [['nobody'], 1, 'portcullis: There is no key with the id, masked token or description "nobody".\n'],
    [['nobody@localhost'], 1, 'portcullis: There is no member nobody@localhost.\n'],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await cli.run('access', ...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('portcullis policy diff', () => {
  it('finds nothing between a database and its export', async () => {
    expect(await json('policy', 'diff', exported)).toEqual({ ...NOTHING, flips: [], ...REST });
    expect(await cli.run('policy', 'diff', exported)).toMatchObject({
      stdout: `No change in access.\n${JUDGED_BY}`,
    });
  });

  it('prints exactly what a draft would change, and fails where access is new, if asked to', async () => {
    const draft = draftFile('remove.yaml', `rules:\n  - { id: ${denied}, remove: true }\n`);
    const expected = expect.stringMatching(
      new RegExp(
        `^newly permitted from any address, by removed key rule ${denied} \\(deny_models, No paid\\)\n  key_[0-9a-f]{32} \\(First gateway key\\)\n    \\+ sandbox/sandbox-paid\n\n1 newly permitted, 0 no longer permitted`,
      ),
    );
    expect(await cli.run('policy', 'diff', '--draft', draft)).toEqual({ code: 0, stdout: expected, stderr: '' });
    expect(await cli.run('policy', 'diff', '--draft', draft, '--fail-on', 'new-access')).toEqual({
      code: 1,
      stdout: expected,
      stderr: `${COUNTS_ALL}portcullis: 1 newly permitted.\n`,
    });
  });

  it('does not fail where access is lost only', async () => {
    const draft = draftFile(
      'deny.yaml',
      'rules:\n  - organization: true\n    ruleType: deny_providers\n    ruleValue: { providers: [sandbox] }\n',
    );
    const { code, stdout } = await cli.run('policy', 'diff', '--draft', draft, '--fail-on', 'new-access');
    expect(code).toBe(0);
    expect(stdout).toContain('0 newly permitted, 13 no longer permitted');
  });

  it('counts what flips and cannot be called, and lists it if asked to, or between two documents', async () => {
    const draft = draftFile(
      'models.yaml',
      "rules:\n  - { organization: true, ruleType: deny_models, ruleValue: { models: ['gpt-5'] } }\n",
    );
    const flip = {
      change: 'lost',
      holders: HOLDERS,
      mappings: MEANT,
    };
    const uncallable = { ...NOTHING, withoutCredential: { gained: 0, lost: LOST } };
    expect(await json('policy', 'diff', '--draft', draft)).toEqual({
      ...uncallable,
      flips: [],
      ...REST,
      changedRules: 1,
    });
    expect(await cli.run('policy', 'diff', '--draft', draft)).toMatchObject({
      stdout: `0 newly permitted, ${LOST} no longer permitted (pairs of a key or member and a mapping), and for none of them is there a credential to call it: --without-credential lists them.\n${JUDGED_BY}`,
    });
    expect(await json('policy', 'diff', '--draft', draft, '--without-credential')).toMatchObject({
      ...uncallable,
      flips: [{ ...flip, credential: false }],
    });
    const world: { organizations: [{ rules: unknown[] }] } = JSON.parse(readFileSync(exported, 'utf8'));
    world.organizations[0].rules.push({ id: 'rule_new', ruleType: 'deny_models', ruleValue: { models: ['gpt-5'] } });
    const changed = draftFile('changed.json', JSON.stringify(world));
    expect(await json('policy', 'diff', exported, changed)).toMatchObject({
      ...NOTHING,
      lost: LOST + MEANT.length, // An exported document does not say which key is the playground's.
      flips: [{ ...flip, holders: [HOLDERS[0], { scope: 'key', name: PLAYGROUND }, HOLDERS[1]], credential: true }],
    });
  });

  it('fails safe: without a credential in its environment it counts all that the rules permit, lists it and says so', async () => {
    const added = idOf((await cli.run('rules', 'add', '--member', MEMBER, 'deny_models', 'gpt-5')).stdout);
    const draft = draftFile('open.yaml', `rules:\n  - { id: ${added}, remove: true }\n`);
    const gate = ['policy', 'diff', '--draft', draft, '--fail-on', 'new-access'];
    const listed = {
      code: 1,
      stdout: expect.stringMatching(
        /^newly permitted, without a credential, from any address, by removed member rule /,
      ),
    };
    const failed = `portcullis: ${LOST} newly permitted.\n`;
    expect(await cli.run(...gate)).toMatchObject({ ...listed, stderr: `${COUNTS_ALL}${failed}` });
    expect(await cli.run(...gate, '--without-credential')).toMatchObject({ ...listed, stderr: failed });
    expect(await cli.runWith({ OPENAI_API_KEY: 'sk-none' }, ...gate, '--against', 'env')).toMatchObject({
      code: 1,
      stderr: `portcullis: ${HOLDERS.length} newly permitted.\n`,
    });
    const elsewhere = await cli.runWith({ XAI_API_KEY: 'sk-none' }, ...gate, '--against', 'env');
    expect(elsewhere).toMatchObject({ code: 0, stderr: '' });
    expect(elsewhere.stdout).toMatch(
      /^4 newly permitted, 0 no longer permitted .* for none of them is there a credential/,
    );
    await cli.run('rules', 'remove', added);
  });

  it('says that rules differ where access does not, and never that nothing does', async () => {
    const draft = draftFile(
      'same.yaml',
      'rules:\n  - { key: First gateway key, ruleType: deny_models, ruleValue: { models: [sandbox-paid] } }\n',
    );
    expect(await cli.run('policy', 'diff', '--draft', draft)).toMatchObject({
      stdout: `1 rule differs; no change in access.\n${JUDGED_BY}`,
    });
  });

  it('shows what a rule in mode report would change if it were enforced', async () => {
    const draft = draftFile(
      'report.yaml',
      'rules:\n  - { key: First gateway key, ruleType: deny_models, ruleValue: { models: [sandbox-free, gpt-5] }, mode: report }\n',
    );
    const { code, stdout } = await cli.run('policy', 'diff', '--draft', draft, '--fail-on', 'new-access');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^would no longer be permitted from any address, by key rule draft_1 \(deny_models\), if enforced\n {2}key_[0-9a-f]{32} \(First gateway key\)\n {4}- sandbox\/sandbox-free\n/,
    );
    expect(stdout).toContain(
      `If the rules in mode report were enforced, 0 would be newly permitted and ${MEANT.length + 1} would no longer be permitted (pairs of a key or member and a mapping), ${MEANT.length} of them without a credential to call them.\n`,
    );
    expect(stdout).not.toContain('No change');
  });

  it('warns of a draft as of a stored rule, and names what was probably meant', async () => {
    const draft = draftFile(
      'typo.yaml',
      'rules:\n  - { key: First gateway key, ruleType: deny_models, ruleValue: { models: [gpt-5-mni] } }\n',
    );
    const warning = '"gpt-5-mni" is not the name of a model in the catalogue; did you mean `gpt-5-mini`?';
    expect(await cli.run('policy', 'diff', '--draft', draft)).toMatchObject({
      code: 0,
      stderr: `portcullis: warning: /rules/0: ${warning}\n`,
    });
    const written = await cli.run('rules', 'add', '--key', KEY, 'deny_models', 'gpt-5-mni');
    await cli.run('rules', 'remove', idOf(written.stdout));
    expect(written.stderr).toBe(`portcullis: warning: ${warning}\n`);
  });

  it('compares two databases by their folders: here their keys are others', async () => {
    const other = path.join(cli.folder, 'other');
    mkdirSync(other);
    const store = createStore({
      path: databasePath(other),
      clock: systemClock,
      create: true,
      auditKey: cli.secrets.signingKey.key,
    });
    await store.write((db, now) => firstRun(db, cli.secrets.peppers[0], now));
    store.close();
    expect(await json('policy', 'diff', cli.folder, other)).toMatchObject({
      gained: 14,
      lost: 13,
      withoutCredential: { gained: 2 * OTHERS, lost: 2 * OTHERS },
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
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^portcullis: ${file}:${place}: [^\n]+\n$`));
  });

  it.each([
    [[], 2, 'portcullis: Name a source to compare with, or a --draft.\n'],
    [['nowhere'], 2, 'portcullis: There is no folder or file nowhere.\n'],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await cli.run('policy', 'diff', ...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('portcullis policy lint', () => {
  it('prints what it finds, and fails if asked to', async () => {
    const added = idOf((await cli.run('rules', 'add', '--member', MEMBER, 'deny_models', 'gpt-9')).stdout);
    expect(await json('policy', 'lint')).toMatchObject({
      findings: [{ code: 'unknown-model' }, { code: 'dead-rule' }, ...OPEN],
    });
    const strict = await cli.run('policy', 'lint', '--strict');
    expect(strict.code).toBe(1);
    expect(strict.stdout).toMatch(
      new RegExp(`^dead-rule +member owner@localhost +The rule ${added} matches nothing that exists.$`, 'm'),
    );
    expect(strict.stderr).toBe('portcullis: 4 findings.\n');
    await cli.run('rules', 'remove', added);
  });

  it('looks at an export too', async () => {
    expect(await json('policy', 'lint', exported)).toMatchObject({ findings: OPEN });
  });
});

describe('portcullis policy explain', () => {
  const explain = (...args: string[]) => cli.run('policy', 'explain', '--key', KEY, ...args);

  it('says why, without which rules not, and what else', async () => {
    const { code, stdout } = await explain('--model', 'sandbox-paid', '--address', '::ffff:192.0.2.1');
    expect(code).toBe(0);
    expect(stdout).toContain('chat with sandbox-paid from 192.0.2.1: deny');
    expect(stdout).toContain(`Access denied: model not allowed: sandbox-p* is denied by rule ${denied} (No paid).`);
    expect(stdout).toMatch(
      new RegExp(`^sandbox/sandbox-paid +key +deny_models +sandbox-p\\* +${denied} \\(No paid\\)$`, 'm'),
    );
    expect(stdout).toContain(`It would be permitted without ${denied} (key deny_models, No paid).`);
    expect(stdout).toContain('Permitted instead: sandbox/sandbox-free (same family).');
  });

  it('writes prices as rules have them', async () => {
    const added = await cli.run('rules', 'add', '--member', MEMBER, 'deny_pricing', '--max-input-price', '0.15');
    const { stdout } = await explain('--model', 'sandbox-slow');
    expect(stdout).toMatch(
      /^sandbox\/sandbox-slow +member +deny_pricing +input price above 0\.15 USD per million tokens +rule_/m,
    );
    await cli.run('rules', 'remove', idOf(added.stdout));
  });

  it('says what the decision would be with the report rules in force', async () => {
    const report = ['deny_models', 'sandbox-free', '--mode', 'report', '--description', 'Trial'];
    const { stdout: added } = await cli.run('rules', 'add', '--member', MEMBER, ...report);
    const { stdout } = await explain('--model', 'sandbox-free');
    expect(stdout).toContain('1 of 1 provider may serve this call');
    expect(stdout.trimEnd().split('\n').slice(-2)).toEqual([
      'With the report rules in force: 0 of 1 permitted.',
      `Would deny: ${idOf(added)} (member deny_models, Trial).`,
    ]);
    await cli.run('rules', 'remove', idOf(added));
  });

  it('says what a permitted request violates: nothing', async () => {
    expect(await json('policy', 'explain', '--key', KEY, '--model', 'sandbox-free')).toMatchObject({
      outcome: 'permit',
      violations: [],
      flips: { sets: [], exhaustive: true },
    });
  });

  it('says of a retired model since when no provider serves it (issue 12, 18)', async () => {
    const { code, stderr } = await cli.run(
      'policy',
      'explain',
      '--key',
      'First gateway key',
      '--model',
      'claude-3-opus',
    );

    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('is retired since 2026-01-05: no provider serves it any more.'),
    ]);
  });

  it('says of a model that no one can call what a caller would read, and what the rules would do', async () => {
    const { code, stdout } = await explain('--model', 'gpt-5');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        new RegExp(
          [
            '^chat with gpt-5 from an unknown address: not found \\(policy [0-9a-f]{12}\\.\\d+\\)',
            'No provider of the model `gpt-5` has a credential for this project.',
            '',
            `With a credential, ${MEANT.length} of ${MEANT.length} candidates would be permitted: ${MEANT.join(', ')}.`,
            '',
            'Nothing is violated.\n',
          ].join('\n'),
        ),
      ),
    });
    const others = MEANT.filter((id) => id !== 'openai/gpt-5').join(', ');
    const { stdout: half } = await cli.runWith(
      { OPENAI_API_KEY: 'sk-none' },
      ...['policy', 'explain', '--key', KEY, '--model', 'gpt-5', '--against', 'env'],
    );
    expect(half).toContain(
      `1 of 1 provider may serve this call: openai/gpt-5.\nNot callable for lack of a credential: ${others}.\n`,
    );
  });

  it.each([
    [['--model', 'gpt-9'], 1, 'portcullis: The model `gpt-9` does not exist. Did you mean `gpt-4`?\n'],
    [
      ['--model', 'sandbox-free', '--address', '10.0.0.0/8'],
      2,
      'portcullis: --address ("10.0.0.0/8") is not an IPv4 or IPv6 address.\n',
    ],
    [['--model', 'sandbox-free', '--facts', '{'], 2, 'portcullis: --facts is not JSON: {\n'],
    [
      ['--model', 'sandbox-free', '--facts', '{"door": "ftp"}'],
      2,
      'portcullis: --facts: /door ("ftp") must be one of rest, mcp.\n',
    ],
  ])('%j ends with %i', async (args, code, stderr) => {
    expect(await explain(...args)).toEqual({ code, stdout: '', stderr });
  });
});

describe('the own providers of an organization', () => {
  beforeAll(async () => {
    const done = [
      await cli.run('custom-providers', 'add', 'acme', '--base-url', 'https://models.example/v1', '--keyless'),
      await cli.run('custom-models', 'add', 'acme', 'house/own'),
      await cli.run('custom-providers', 'add', 'vault', '--base-url', 'https://vault.example/v1'),
      await cli.run('custom-models', 'add', 'vault', 'sealed'),
      await cli.runWith({ TOKEN: 'sk-none' }, 'provider-keys', 'add', 'xai', '--label', 'Ours', '--token-env', 'TOKEN'),
    ];
    expect(done.map(({ code, stderr }) => ({ code, stderr }))).toEqual(done.map(() => ({ code: 0, stderr: '' })));
  });

  it('is reached where there is a credential: a keyless provider, and one with a provider key', async () => {
    const xai = activeMappings({ catalog }).find(({ providerId }) => providerId === 'xai')?.modelId;
    const { stdout } = await cli.run('access', KEY);
    expect(stdout).toMatch(/^house\/own +acme +-$/m);
    expect(stdout).toMatch(new RegExp(`^${xai} +xai +-$`, 'm'));
    expect(stdout).not.toContain('vault');
    expect((await cli.run('access', KEY, '--without-credential')).stdout).toMatch(/^sealed +vault +no credential +-$/m);
  });

  it('is explained by its own names', async () => {
    const explain = ['policy', 'explain', '--key', KEY, '--model'];
    expect(await json(...explain, 'acme/house/own')).toMatchObject({
      outcome: 'permit',
      candidates: ['acme/house/own'],
    });
    expect(await json(...explain, 'vault/sealed')).toMatchObject({
      outcome: 'not_found',
      reason: 'No provider of the model `vault/sealed` has a credential for this project.',
      permitted: ['vault/sealed'],
    });
    expect(await cli.run(...explain, 'acme/gpt-5')).toMatchObject({
      code: 1,
      stderr: 'portcullis: The model `acme/gpt-5` does not exist. Did you mean `gpt-5`?\n',
    });
  });

  it('is what rules may mean, whether there is a credential or not', async () => {
    const rules = ['--member', MEMBER, 'deny_models', 'acme/house/own', 'vault/*'];
    const [models, providers] = [
      idOf((await cli.run('rules', 'add', ...rules)).stdout),
      idOf((await cli.run('rules', 'add', '--member', MEMBER, 'deny_providers', 'custom:acme', 'xai')).stdout),
    ];
    expect(await json('policy', 'lint')).toMatchObject({ findings: OPEN });
    const { stdout } = await cli.run('access', KEY, '--denied');
    expect(stdout).toMatch(new RegExp(`^house/own +acme +${models}, ${providers}$`, 'm'));
    const fixtures = path.join(cli.folder, 'own.yaml');
    expect((await cli.run('policy', 'generate', '--database', '-o', fixtures)).code).toBe(0);
    expect(readFileSync(fixtures, 'utf8')).toMatch(/^ {6}acme\/house\/own: \{\}$/m);
    expect((await cli.run('policy', 'test', fixtures)).code).toBe(0);
    for (const id of [models, providers]) await cli.run('rules', 'remove', id);
  });

  it('is part of what a draft would change', async () => {
    const draft = draftFile(
      'own-draft.yaml',
      'rules:\n  - { organization: true, ruleType: deny_providers, ruleValue: { providers: [custom] } }\n',
    );
    expect(await json('policy', 'diff', '--draft', draft)).toMatchObject({
      lost: 2,
      withoutCredential: { gained: 0, lost: 2 },
      flips: [{ mappings: ['acme/house/own'] }],
    });
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
