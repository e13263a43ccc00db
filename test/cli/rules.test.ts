import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conditionOptions } from '../../src/cli/terminal/usage-faults.ts';
import { RULE_TYPES } from '../../src/domain/iam-rule.ts';
import type { RuleCreateAnswer } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { CASES } from '../../src/policy/self-test.ts';
import { noteServed } from '../../src/store/bundles/served-record.ts';
import { PROXIES_UNSET } from '../support/warnings.ts';
import { type CommandLine, createCommandLine, jsonOf, type Outcome, served } from './command-line.ts';

const validateRuleCreateAnswer = validator('RuleCreateAnswer');
const validateRuleList = validator('RuleList');

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

function answerOf(outcome: Outcome): RuleCreateAnswer {
  const answer = jsonOf(outcome);
  if (!validateRuleCreateAnswer(answer)) throw new Error(outcome.stdout);
  return answer;
}

async function listedTypes(...owner: string[]): Promise<string[]> {
  const list = jsonOf(await portcullis.run('rules', 'list', ...owner, '--json'));
  if (!validateRuleList(list)) throw new Error('not a list of rules');
  return list.rules.map(({ ruleType }) => ruleType);
}

async function compiled(subjectId: string): Promise<unknown> {
  const texts = await portcullis.store.subjectRules(portcullis.first.organizationId, [subjectId]);
  return JSON.parse(texts.get(subjectId)?.text ?? '');
}

/** The option that fills a field of conditions. */
const OPTIONS = new Map(
  Object.values(conditionOptions()).flatMap(({ fields }) =>
    Object.entries(fields).map(([field, { long }]) => [field, long] as const),
  ),
);

const KEY = ['--key', 'First gateway key'];

describe('portcullis rules', () => {
  it('adds, changes and removes a rule of a key, and a running server judges by it at once', async () => {
    const models = ['nobody/*', 'gpt-unknown'];
    const added = answerOf(await portcullis.run('rules', 'add', ...KEY, 'deny_models', ...models, '--json'));
    expect(added).toMatchObject({
      rule: { ruleType: 'deny_models', ruleValue: { models }, status: 'active', mode: 'enforce', description: null },
      warnings: [
        'No name of a model in the catalogue begins with "nobody/".',
        '"gpt-unknown" is not the name of a model in the catalogue.',
      ],
      widens: { count: 0, cells: [] },
    });
    const { id, apiKeyId } = added.rule;
    expect(await compiled(apiKeyId ?? '')).toHaveProperty('enforce.deny_models.rules', [id]);

    const update = ['--rule-type', 'allow_providers', 'sandbox', '--mode', 'report', '--description', 'Trial'];
    expect(jsonOf(await portcullis.run('rules', 'update', id, ...update, '--json'))).toEqual({
      before: added.rule,
      rule: {
        ...added.rule,
        updatedAt: expect.any(String),
        ruleType: 'allow_providers',
        ruleValue: { providers: ['sandbox'] },
        mode: 'report',
        description: 'Trial',
        reportOnly: { since: expect.any(String), wouldDeny: 0, wouldAllow: 0, lastSeenAt: null },
      },
      warnings: [],
      widens: { count: 0, cells: [] },
    });
    expect(jsonOf(await portcullis.run('rules', 'remove', id, '--json'))).toEqual({
      id,
      deleted: true,
      widens: { count: 0, cells: [] },
    });
    expect(await compiled(apiKeyId ?? '')).toEqual({ enforce: {} });
  });

  it('lists the rules of one owner, or of all', async () => {
    await portcullis.run(
      'rules',
      'add',
      '--organization',
      'allow_pricing',
      '--type',
      'paid',
      '--max-input-price',
      '2.50',
    );
    await portcullis.run('rules', 'add', '--member', 'owner@localhost', 'deny_ip_cidrs', '192.0.2.1/32');
    await portcullis.run('rules', 'add', ...KEY, 'allow_models', '*', '--status', 'inactive');
    expect(await listedTypes()).toEqual(['allow_pricing', 'deny_ip_cidrs', 'allow_models']);
    expect(await listedTypes('--organization')).toEqual(['allow_pricing']);
    expect(await listedTypes('--member', 'owner@localhost')).toEqual(['deny_ip_cidrs']);
    expect(await listedTypes(...KEY)).toEqual(['allow_models']);
    const { stdout } = await portcullis.run('rules', 'list', '--organization');
    expect(stdout.replace(/rule_[0-9a-f]{32}/, 'rule_1').split(/ {2,}|\n/)).toEqual([
      ...['ID', 'OWNER', 'TYPE', 'VALUE', 'MODE', 'STATUS', 'DESCRIPTION'],
      ...['rule_1', 'Default', 'allow_pricing', 'pricingType paid, maxInputPrice 2.50', 'enforce', 'active', '-'],
      '',
    ]);
  });

  it('says on stderr what may not be as it was meant', async () => {
    const { code, stderr } = await portcullis.run('rules', 'add', '--organization', 'deny_providers', 'acme');
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'portcullis: warning: "acme" is not a provider in the catalogue; a custom provider is written "custom:acme".\n',
    });
  });

  it('warns of a rule on addresses while TRUSTED_PROXIES is unset, and not once it says who is believed', async () => {
    const add = ['rules', 'add', '--organization', 'deny_ip_cidrs', '192.0.2.2/32', '--json'];
    const unset = await portcullis.run(...add);
    noteServed(portcullis.folder, { ...served, trustedProxies: [] });
    const set = answerOf(await portcullis.run(...add));
    noteServed(portcullis.folder, served);
    const printed = await portcullis.run(...add.slice(0, -1));

    expect([answerOf(unset).warnings, set.warnings]).toEqual([[PROXIES_UNSET], []]);
    expect([printed.code, printed.stderr]).toEqual([0, `portcullis: warning: ${PROXIES_UNSET}\n`]);
    const list = jsonOf(await portcullis.run('rules', 'list', '--organization', '--json'));
    if (!validateRuleList(list)) throw new Error('not a list of rules');
    for (const { id, ruleType } of list.rules) {
      if (ruleType === 'deny_ip_cidrs') await portcullis.run('rules', 'remove', id);
    }
  });

  it.each(RULE_TYPES)('adds a rule of type %s by entries, or by options', async (type) => {
    const { ruleValue } = CASES[type][0][1];
    const given = Object.entries(ruleValue).flatMap(([field, value]) =>
      Array.isArray(value) ? value : [OPTIONS.get(field) ?? field, String(value)],
    );
    const added = answerOf(await portcullis.run('rules', 'add', '--organization', type, ...given, '--json')).rule;
    expect([added.ruleType, added.ruleValue]).toEqual([type, ruleValue]);
    await portcullis.run('rules', 'remove', added.id);
  });

  it.each([
    [2, ['--organization', 'deny_models', 'ok', 'a*b'], 'The entry ("a*b") must be a model id'],
    [2, ['--organization', 'allow_ip_cidrs', '10.0.0.1'], 'The entry is not a CIDR range: "10.0.0.1" has no'],
    [2, ['--organization', 'deny_pricing', '--max-output-price', '-1'], '--max-output-price: An amount must be'],
    [
      1,
      ['--member', 'nobody@example.com', 'deny_models', '*'],
      'There is no member with the id or e-mail "nobody@example.com".',
    ],
    [1, ['--key', 'None', 'deny_models', '*'], 'There is no key with the id, masked token or description "None".'],
  ])('exits with %i and refuses to add %j, naming what is wrong', async (status, args, message) => {
    const { code, stdout, stderr } = await portcullis.run('rules', 'add', ...args);
    expect({ code, stdout, lines: stderr.match(/\n/g)?.length }).toEqual({ code: status, stdout: '', lines: 1 });
    expect(stderr).toContain(`portcullis: ${message}`);
  });

  it('shows a changed rule before and after, and what it newly permits; none takes a price away', async () => {
    const caps = ['--max-input-price', '0', '--max-output-price', '0'];
    const { id } = answerOf(await portcullis.run('rules', 'add', ...KEY, 'deny_pricing', ...caps, '--json')).rule;
    const only = answerOf(
      await portcullis.run('rules', 'add', ...KEY, 'allow_models', 'sandbox/sandbox-paid', '--json'),
    ).rule;
    const { code, stdout } = await portcullis.run('rules', 'update', id, '--max-output-price', 'none');
    expect(code).toBe(0);
    expect(
      stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, '  ').replaceAll(/_[0-9a-f]{32}/g, '_1')),
    ).toEqual([
      '  ID  OWNER  TYPE  VALUE  MODE  STATUS  DESCRIPTION',
      'before  rule_1  First gateway key  deny_pricing  maxInputPrice 0, maxOutputPrice 0  enforce  active  -',
      'after  rule_1  First gateway key  deny_pricing  maxInputPrice 0  enforce  active  -',
      'No new access.',
      '',
    ]);
    const refused = await portcullis.run('rules', 'update', id, '--max-input-price', '100', '--fail-on-new-access');
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      1,
      '',
      'portcullis: The change is refused: it would newly permit sandbox/sandbox-paid for First gateway key.\n',
    ]);
    const widened = await portcullis.run('rules', 'update', id, '--max-input-price', '100');
    const listed = widened.stdout.replaceAll(/_[0-9a-f]{32}/g, '_1').replaceAll(/ {2,}/g, '  ');
    expect(listed).toContain(
      '1 access is new: First gateway key may call sandbox/sandbox-paid from 0.0.0.0-192.0.2.0, 192.0.2.2-255.255.255.255, ::/0.\n',
    );
    for (const each of [id, only.id]) await portcullis.run('rules', 'remove', each);
  });

  it('says what a rule that is added, or removed, newly permits, and refuses that on request', async () => {
    const text = ({ code, stdout, stderr }: Outcome) => ({
      code,
      stderr,
      lines: stdout
        .replaceAll(/_[0-9a-f]{32}/g, '_1')
        .split('\n')
        .map((line) => line.replaceAll(/ {2,}/g, '  ')),
    });
    const cells = [
      '1 access is new: First gateway key may call sandbox/sandbox-paid from 0.0.0.0-192.0.2.0, 192.0.2.2-255.255.255.255, ::/0.',
      '',
    ];
    const titles = 'ID  OWNER  TYPE  VALUE  MODE  STATUS  DESCRIPTION';
    const table = (value: string) => [titles, `rule_1  First gateway key  allow_models  ${value}  enforce  active  -`];
    const refused = {
      code: 1,
      stdout: '',
      stderr: 'portcullis: The change is refused: it would newly permit sandbox/sandbox-paid for First gateway key.\n',
    };
    const add = (model: string, ...options: string[]) =>
      portcullis.run('rules', 'add', ...KEY, 'allow_models', model, ...options);
    const ids = async () => Object(jsonOf(await portcullis.run('rules', 'list', ...KEY, '--json'))).rules;
    const others = (await ids()).length;

    expect(text(await add('sandbox/sandbox-free', '--fail-on-new-access'))).toEqual({
      code: 0,
      stderr: '',
      lines: [...table('sandbox/sandbox-free'), 'No new access.', ''],
    });
    expect(await add('sandbox/sandbox-paid', '--fail-on-new-access')).toEqual(refused);
    expect(await ids()).toHaveLength(others + 1);
    expect(text(await add('sandbox/sandbox-paid'))).toEqual({
      code: 0,
      stderr: '',
      lines: [...table('sandbox/sandbox-paid'), ...cells],
    });

    const deny = ['rules', 'add', ...KEY, 'deny_models', 'sandbox/sandbox-paid', '--fail-on-new-access', '--json'];
    const { rule } = answerOf(await portcullis.run(...deny));
    expect(await portcullis.run('rules', 'remove', rule.id, '--fail-on-new-access')).toEqual(refused);
    expect(await ids()).toHaveLength(others + 3);
    expect(text(await portcullis.run('rules', 'remove', rule.id))).toEqual({
      code: 0,
      stderr: '',
      lines: ['Removed rule_1.', ...cells],
    });
    for (const { id, ruleValue } of await ids()) {
      if (ruleValue.models?.[0]?.startsWith('sandbox/')) await portcullis.run('rules', 'remove', id);
    }
  });

  it('keeps a rule on prices from losing its last condition', async () => {
    const free = ['deny_pricing', '--type', 'free', '--json'];
    const { id } = answerOf(await portcullis.run('rules', 'add', ...KEY, ...free)).rule;
    expect(await portcullis.run('rules', 'update', id, '--type', 'none')).toMatchObject({
      code: 2,
      stderr: 'portcullis: The rule would have no condition left: use rules remove instead.\n',
    });
    await portcullis.run('rules', 'remove', id);
  });

  it('refuses to remove a rule that is not there', async () => {
    const { code, stderr } = await portcullis.run('rules', 'remove', 'rule_none');
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'portcullis: There is no rule "rule_none".\n' });
  });
});
