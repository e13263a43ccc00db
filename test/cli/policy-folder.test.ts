// `portcullis policy plan|apply|pull|document`, and what the other commands say of rules that a folder states.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, JUDGED_BY, jsonOf } from './command-line.ts';

let portcullis: CommandLine;
beforeEach(async () => {
  portcullis = await createCommandLine();
});
afterEach(() => portcullis.close());

function write(name: string, text: string): void {
  const file = path.join(portcullis.folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const policy = (...args: string[]) => portcullis.run('policy', ...args);
const masked = (text: string): string => text.replaceAll(/_[0-9a-f]{32}/g, '_…');

const rules = (model: string): string => `keys:
  First gateway key:
    rules:
      no-paid:
        ruleType: deny_models
        ruleValue: { models: [${model}] }
`;

it('plans, applies and plans again', async () => {
  write('rules/keys.yaml', rules('sandbox-paid'));
  const plan = await policy('plan', 'rules');
  expect([plan.code, plan.stderr, masked(plan.stdout)]).toEqual([
    0,
    '',
    `   OWNER                  NAME     TYPE         VALUE         MODE     STATUS  DESCRIPTION
+  key First gateway key  no-paid  deny_models  sandbox-paid  enforce  active  -

1 rule to add, 0 unchanged (source: policy).

no longer permitted from any address, by added key rule no-paid (deny_models)
  key_… (First gateway key)
    - sandbox/sandbox-paid

0 newly permitted, 1 no longer permitted (pairs of a key or member and a mapping).
${JUDGED_BY}`,
  ]);
  const applied = await policy('apply', 'rules', '--fail-on', 'new-access', '--revision', '3f2a91c');
  const shown = masked(plan.stdout)
    .replace('1 rule to add, 0 unchanged (source: policy).\n\n', '')
    .replace(JUDGED_BY, '');
  expect([applied.code, masked(applied.stdout)]).toEqual([
    0,
    `${shown}\nApplied: 1 rule added, 0 unchanged (source: policy).\n${JUDGED_BY}`,
  ]);
  expect(await policy('apply', 'rules')).toEqual({
    code: 0,
    stdout: 'No changes: 1 rule already as the folder states it (source: policy).\n',
    stderr: '',
  });
  const [titles = '', rule = ''] = (await portcullis.run('rules', 'list', '--wide')).stdout.split('\n');
  expect([titles.slice(-10), rule.slice(-17)]).toEqual(['MANAGED BY', '  policy: no-paid']);
});

it('shows what changes, adopts and leaves, with warnings and places', async () => {
  await portcullis.run('rules', 'add', '--organization', 'allow_pricing', '--max-output-price', '10');
  await portcullis.run('rules', 'add', '--organization', 'deny_models', 'x', '--description', 'no x');
  write('rules/keys.yaml', rules('sandbox-paid, sandbox-slow'));
  await policy('apply', 'rules');
  write('rules/keys.yaml', rules('sandbox-pay, sandbox-slow'));
  write(
    'rules/organization.yaml',
    'organization: { rules: { cheap: { ruleType: allow_pricing, ruleValue: { maxOutputPrice: 10 }, description: Cheap } } }',
  );
  const plan = await policy('plan', 'rules', '--prune');
  expect([plan.code, masked(plan.stdout).split('\n\n', 2)]).toEqual([
    0,
    [
      `   OWNER                  NAME     TYPE           VALUE                        MODE     STATUS  DESCRIPTION
=  organization           cheap    allow_pricing  maxOutputPrice 10            enforce  active  - → Cheap
-  organization           -        deny_models    x                            enforce  active  no x
~  key First gateway key  no-paid  deny_models    -sandbox-paid, +sandbox-pay  enforce  active  -`,
      '1 rule to change, 1 to remove, 1 to adopt, 0 unchanged (source: policy).',
    ],
  ]);
  expect(plan.stderr).toBe(
    'portcullis: warning: rules/keys.yaml:4:7: "sandbox-pay" is not the name of a model in the catalogue; did you mean `sandbox-paid`?\n',
  );
  write(
    'rules/organization.yaml',
    'organization: { rules: { cheap: { ruleType: allow_pricing, ruleValue: { maxInputPrice: 2 } } } }',
  );
  expect((await policy('plan', 'rules')).stdout).toContain('+  organization           cheap ');
});

it('fails on new access, before anything is done, whether there is a credential or not', async () => {
  write('rules/keys.yaml', rules('gpt-5'));
  await policy('apply', 'rules');
  write('rules/keys.yaml', 'keys: {}\n');
  for (const command of ['plan', 'apply']) {
    const { code, stdout, stderr } = await policy(command, 'rules', '--fail-on', 'new-access');
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^portcullis: (\d+) newly permitted, \1 of them without a credential to call them\.\n$/),
    ]);
    expect(stdout).toContain('-  key First gateway key  no-paid');
  }
  expect(await policy('plan', 'rules', '--out', 'plan.json')).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(path.join(portcullis.folder, 'plan.json'), 'utf8'))).toEqual(
    jsonOf(await policy('plan', 'rules', '--json')),
  );
});

// Ten commands, each a process of its own.
it('applies what was reviewed, or nothing', { timeout: 120_000 }, async () => {
  write('rules/keys.yaml', rules('sandbox-paid'));
  await policy('plan', 'rules', '--prune', '--out', 'plan.json');
  write('rules/keys.yaml', rules('sandbox-slow'));
  expect(await policy('apply', 'rules', '--plan', 'plan.json')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'portcullis: The folder does not state what it did when the plan was made. Plan again, review what it says now, and apply that.\n',
  });
  write('rules/keys.yaml', `# moved\n${rules('sandbox-paid')}`);
  await portcullis.run('rules', 'add', '--organization', 'deny_models', 'sandbox-slow');
  expect(await policy('apply', 'rules', '--plan', 'plan.json')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'portcullis: The rules have changed since the plan was made: it is for their revision 0, and now is 1. Plan again, review what it says now, and apply that.\n',
  });
  await policy('plan', 'rules', '--prune', '--out', 'plan.json');
  expect(jsonOf(await policy('apply', 'rules', '--plan', 'plan.json', '--json'))).toMatchObject({
    applied: true,
    prune: true,
    changes: [{ action: 'add' }, { action: 'remove', name: null }],
  });
  write('other.json', '{}');
  expect((await policy('apply', 'rules', '--plan', 'other.json')).stderr).toBe(
    'portcullis: other.json is not what `portcullis policy plan --out` writes.\n',
  );
  expect((await policy('apply', 'rules', '--plan', 'plan.json', '--prune')).code).toBe(2);
});

it('names every fault of a folder with its place, and does nothing', async () => {
  write('rules/a.yaml', `${rules('x y')}  nobody: { rules: {} }\n`);
  const faults = `rules/a.yaml:6:31: /keys/First gateway key/rules/no-paid/ruleValue/models/0 ("x y") must be a model id (letters, digits and . _ : @ / -, at most 512 of them) or a prefix of one that ends in its only *.
rules/a.yaml:7:3: /keys/nobody: no key has this description.
portcullis: Nothing was done: 2 faults in the policy folder.
`;
  for (const command of ['plan', 'apply']) {
    expect(await policy(command, 'rules')).toEqual({ code: 2, stdout: '', stderr: faults });
  }
  expect(await policy('plan', 'nowhere')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'portcullis: There is no folder or file nowhere.\n',
  });
  write('empty/note.txt', '');
  expect(await policy('apply', 'empty', '--prune')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('The folder holds no .yaml or .yml file.'),
  });
});

it('pulls what is live: its apply adopts all of it, and changes nothing', async () => {
  await portcullis.run(
    'rules',
    'add',
    '--key',
    'First gateway key',
    'deny_models',
    'b',
    'a',
    '--description',
    'No paid!',
  );
  await portcullis.run('rules', 'add', '--key', 'First gateway key', 'deny_models', 'c', '--mode', 'report');
  await portcullis.run('rules', 'add', '--member', 'owner@localhost', 'allow_pricing', '--max-input-price', '2.50');
  expect(await policy('pull', 'rules', '--source', 'security')).toEqual({
    code: 0,
    stdout: 'Wrote 4 files to rules.\n',
    stderr: '',
  });
  const file = (name: string): string => readFileSync(path.join(portcullis.folder, 'rules', name), 'utf8');
  expect(file('organization.yaml')).toBe(
    '# yaml-language-server: $schema=policy-folder.schema.json\n\nsource: security\n',
  );
  expect(file('keys/first-gateway-key.yaml')).toBe(`# yaml-language-server: $schema=../policy-folder.schema.json

keys:
  First gateway key:
    rules:
      deny-models:
        ruleType: deny_models
        ruleValue:
          models:
            - c
        mode: report
      no-paid:
        ruleType: deny_models
        ruleValue:
          models:
            - b
            - a
        description: No paid!
`);
  const before = jsonOf(await portcullis.run('rules', 'list', '--json'));
  expect(jsonOf(await policy('apply', 'rules', '--json'))).toMatchObject({
    changes: [{ action: 'adopt' }, { action: 'adopt' }, { action: 'adopt' }],
    access: { gained: 0, lost: 0, changedRules: 0 },
  });
  expect(await policy('plan', 'rules')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('No changes: 3 rules'),
  });
  const bare = (listed: unknown): string =>
    JSON.stringify(listed, (name, value: unknown) => (['managedBy', 'updatedAt'].includes(name) ? undefined : value));
  expect(bare(jsonOf(await portcullis.run('rules', 'list', '--json')))).toBe(bare(before));
  expect((await policy('pull', 'rules')).code).toBe(0);
});

it('pulls over nothing that differs, and deletes nothing', async () => {
  write('rules/mine.yaml', rules('sandbox-paid'));
  expect(await policy('pull', 'rules')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'portcullis: What is live has no place in these files: rules/mine.yaml. Remove them, or pull into a folder of its own.\n',
  });
  expect(existsSync(path.join(portcullis.folder, 'rules/organization.yaml'))).toBe(false);
  await policy('apply', 'rules');
  await policy('pull', 'live');
  write('live/keys/first-gateway-key.yaml', rules('sandbox-slow'));
  expect(await policy('pull', 'live')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'portcullis: These files differ from what is live: live/keys/first-gateway-key.yaml. --force overwrites them.\n',
  });
  expect((await policy('pull', 'live', '--force')).code).toBe(0);
  expect(await policy('plan', 'live')).toMatchObject({ stdout: expect.stringContaining('No changes:') });
});

it('prints a folder as one document, without a database', async () => {
  write('rules/a.yaml', rules('sandbox-paid'));
  write('rules/b.yaml', 'source: security\norganization: { rules: {} }\n');
  expect(jsonOf(await portcullis.runWith({ DATA_DIR: 'nowhere' }, 'policy', 'document', 'rules'))).toEqual({
    source: 'security',
    organization: { rules: {} },
    keys: {
      'First gateway key': {
        rules: { 'no-paid': { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } } },
      },
    },
  });
});

it('warns where a managed rule is changed, or another comes next to it', async () => {
  write('rules/a.yaml', rules('sandbox-paid'));
  await policy('apply', 'rules');
  const [, id = ''] = /(rule_[0-9a-f]{32})/.exec((await portcullis.run('rules', 'list')).stdout) ?? [];
  const changed = await portcullis.run('rules', 'update', id, '--mode', 'report');
  expect(changed.stderr).toBe(
    'portcullis: warning: The policy folder "policy" states this rule as "no-paid": its next apply takes this change back.\n',
  );
  expect(changed.stdout.split('\n', 3).map((line) => line.split(/ {2,}/).at(-1)?.slice(0, 8))).toEqual([
    'MANAGED ',
    'policy: ',
    'policy: ',
  ]);
  const added = await portcullis.run('rules', 'add', '--key', 'First gateway key', 'deny_models', 'sandbox-slow');
  expect(added.stderr).toBe(
    'portcullis: warning: The policy folder "policy" states rules of the same owner, and not this one: an apply with --prune removes it.\n',
  );
  expect(await portcullis.run('rules', 'remove', id)).toEqual({
    code: 0,
    stdout: `Removed ${id}.\nNo new access.\n`,
    stderr:
      'portcullis: warning: The policy folder "policy" states this rule as "no-paid": its next apply makes it again.\n',
  });
});

it('tests fixtures on the rules of a folder, without a database', async () => {
  write('rules/a.yaml', rules('sandbox-paid'));
  write(
    'cases/ci.yaml',
    `name: No paid models
given: { catalog: real, keys: { First gateway key: {} } }
requests: { model: [sandbox-free, sandbox-paid] }
expect:
  - { model: sandbox-free, permit: all }
  - { model: sandbox-paid, deny: key deny_models, rules: no-paid }
`,
  );
  const test = (...args: string[]) => portcullis.runWith({ DATA_DIR: 'nowhere' }, 'policy', 'test', 'cases', ...args);
  expect(await test()).toMatchObject({ code: 2 });
  expect(await test('--folder', 'rules', '--coverage', '--kinds-threshold', '0')).toMatchObject({ code: 0 });
  write('rules/a.yaml', rules('sandbox-slow'));
  expect(await test('--folder', 'rules')).toMatchObject({ code: 1 });
  write('rules/a.yaml', rules('x y'));
  expect(await test('--folder', 'rules')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^rules\/a\.yaml:6:31: .*\nportcullis: Nothing was run: 1 fault in fixtures\.\n$/),
  });
  expect(await test('--folder', 'nowhere')).toMatchObject({ code: 2 });
});

it('says where a rule is managed wherever one is named', async () => {
  write('rules/a.yaml', rules('sandbox-paid'));
  await policy('apply', 'rules');
  const explained = await policy('explain', '--key', 'First gateway key', '--model', 'sandbox-paid');
  expect(masked(explained.stdout)).toContain('rule_… (key deny_models, managed by policy: no-paid)');
  const managedBy = { source: 'policy', name: 'no-paid' };
  const asJson = await policy('explain', '--key', 'First gateway key', '--model', 'sandbox-paid', '--json');
  expect(jsonOf(asJson)).toMatchObject({ rules: [{ managedBy }] });
  const access = await portcullis.run('access', 'First gateway key', '--denied');
  expect(access.stdout).toMatch(/DESCRIPTION {2}MANAGED BY\n.* {2}policy: no-paid\n/);
});
