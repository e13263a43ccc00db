// What running fixtures says of them: what passes, what fails and why, what is covered.
import { describe, expect, it } from 'vitest';
import { faultsIn, folderOf, reportOn, testFolder } from './fixture-folder.ts';

const CATALOG = `
  catalog:
    models:
      swift: { providers: { acme: { inputPricePerMillion: 1, outputPricePerMillion: 1 }, azure: { inputPricePerMillion: 2, outputPricePerMillion: 2 } } }
      slow: { providers: { acme: { inputPricePerMillion: 1, outputPricePerMillion: 1 } } }`;

const fixture = (rules: string, requests: string, expectations: string, name = 'A fixture'): string => `name: ${name}
given:${CATALOG}
  keys: { ci: { rules: { ${rules} } } }
requests: { ${requests} }
expect: [${expectations}]
`;

/** What differs, request by request. */
const differencesIn = (text: string): object[] =>
  reportOn(text).results.flatMap(({ cases }) => cases.flatMap(({ differences }) => differences));

const NO_SLOW = 'no-slow: { deny_models: [slow] }';
const TRIAL = 'trial: { deny_models: [slow], mode: report }';

describe('a request passes', () => {
  it.each([
    ['that is permitted as listed', NO_SLOW, 'model: swift', '{ permit: [azure/swift, acme/swift] }'],
    ['that is denied as listed', NO_SLOW, 'model: slow', '{ deny: key deny_models, rules: no-slow }'],
    ['that is denied for whatever reason', NO_SLOW, 'model: slow', '{ deny: any }'],
    ['that is denied and not listed', NO_SLOW, 'model: [slow, swift]', '{ model: swift, permit: all }'],
    [
      'that is not found and not listed',
      NO_SLOW,
      'model: [swift, slow], provider: [any, azure]',
      '{ model: swift, permit: all }, { model: slow, provider: any, deny: any }',
    ],
    ['whose shadow is as listed', TRIAL, 'model: slow', '{ permit: all, shadow: { permit: none, wouldDeny: trial } }'],
    ['that has no shadow where none is listed', NO_SLOW, 'model: swift', '{ permit: all, shadow: { permit: all } }'],
  ])('%s', (_, rules, requests, expectations) => {
    expect(differencesIn(fixture(rules, requests, expectations))).toEqual([]);
  });
});

it('is denied in the words of the gateway, with what its rule is called', () => {
  const rule = 'no-slow: { deny_models: [slow], description: Only the quick ones }';
  const message = 'Access denied: model not allowed: slow is denied by rule no-slow (Only the quick ones).';
  expect(differencesIn(fixture(rule, 'model: slow', `{ deny: "${message}" }`))).toEqual([]);
});

describe('a request fails', () => {
  const MESSAGE = 'Access denied: model not allowed: slow is denied by rule no-slow.';
  it.each([
    [
      'that is permitted and not listed',
      fixture(NO_SLOW, 'model: [slow, swift]', '{ model: slow, deny: any }'),
      { expected: 'no permit, since no expectation lists it', came: 'permit acme/swift, azure/swift' },
    ],
    [
      'that is permitted and must not be',
      fixture(TRIAL, 'model: slow', '{ deny: key deny_models }'),
      { expected: 'deny key deny_models', came: 'permit acme/slow' },
    ],
    [
      'that is denied and must not be',
      fixture(NO_SLOW, 'model: slow', '{ permit: all }'),
      { expected: 'permit acme/slow', came: `deny key deny_models (${MESSAGE})` },
    ],
    [
      'that permits another candidate',
      fixture('no-azure: { deny_providers: [azure] }', 'model: swift', '{ permit: azure/swift }'),
      { expected: 'permitted azure/swift', came: 'permitted acme/swift' },
    ],
    [
      'that permits one candidate more',
      fixture(NO_SLOW, 'model: swift', '{ permit: azure/swift }'),
      { expected: 'permitted azure/swift', came: 'permitted acme/swift, azure/swift' },
    ],
    [
      'that is denied for another reason',
      fixture(NO_SLOW, 'model: slow', '{ deny: member deny_models }'),
      { expected: 'member deny_models', came: 'key deny_models' },
    ],
    [
      'that is denied with another message',
      fixture(NO_SLOW, 'model: slow', '{ deny: "Access denied: no." }'),
      { expected: 'Access denied: no.', came: MESSAGE },
    ],
    [
      'that is denied by another rule',
      fixture(`${NO_SLOW}, x: { deny_models: [x] }`, 'model: slow', '{ deny: any, rules: x }'),
      { expected: 'rules x', came: 'rules no-slow' },
    ],
    [
      'that violates other rules',
      fixture(NO_SLOW, 'model: [slow, swift]', '{ permit: all, model: swift, violations: { acme/swift: no-slow } }'),
      { expected: 'violations of acme/swift no-slow', came: 'violations of acme/swift none' },
    ],
    [
      'whose shadow denies more',
      fixture(TRIAL, 'model: slow', '{ permit: all, shadow: { permit: none } }'),
      { expected: 'shadow wouldDeny none', came: 'shadow wouldDeny trial' },
    ],
    [
      'that can be judged and must not be',
      fixture(NO_SLOW, 'model: slow', '{ error: unavailable }'),
      { expected: 'error unavailable', came: `deny key deny_models (${MESSAGE})` },
    ],
    [
      'that cannot be judged and is not listed',
      fixture(NO_SLOW, 'model: slow', '').replace('ci: {', 'ci: { unavailable: true,'),
      { expected: 'no permit, since no expectation lists it', came: 'error unavailable' },
    ],
  ])('%s', (_, text, difference) => expect(differencesIn(text)).toEqual([difference]));
});

it('a skipped fixture is not run, but must make sense', () => {
  const skipped = `skip: not decided yet\n${fixture(NO_SLOW, 'model: slow', '{ permit: all }')}`;
  const [result] = reportOn(skipped).results;
  expect([result?.status, result?.cases]).toEqual(['skipped', []]);
  expect(faultsIn({ 'a.yaml': skipped.replace('permit', 'pormit') })).toHaveLength(1);
});

it('a filter takes the fixtures whose name holds it, in whatever case', () => {
  const text = ['One office', 'Two offices', 'Three'].map((name) => fixture(NO_SLOW, 'model: slow', '', name));
  const names = reportOn(text.join('---\n'), { filter: 'OFFICE' }).results.map((each) => each.fixture.name);
  expect(names).toEqual(['One office', 'Two offices']);
});

it('rules may come from a file, as `portcullis rules list --json` prints them; inactive ones do not count', () => {
  const rule = (id: string, model: string, status = 'active') => ({
    ...{ id, createdAt: '', updatedAt: '', ruleType: 'deny_models', ruleValue: { models: [model] }, status },
    ...{ mode: 'enforce', description: null, apiKeyId: 'key_1', memberId: null, organizationId: null },
  });
  const text = fixture(
    '',
    'model: [slow, swift]',
    '{ model: slow, deny: any, rules: rule_1 }, { model: swift, permit: all }',
  );
  const folder = folderOf({
    'a.yaml': text.replace('rules: {  }', 'rulesFrom: ci.json'),
    'ci.json': JSON.stringify({
      rules: [rule('rule_1', 'slow'), rule('rule_2', 'swift', 'inactive')],
      nextCursor: null,
    }),
  });
  expect(testFolder(folder)).toMatchObject({ report: { results: [{ status: 'passed' }] } });
});

it('files in folders named shared are no fixtures', () => {
  const folder = folderOf({
    'a.yaml': fixture(NO_SLOW, 'model: slow', ''),
    'below/b.yml': fixture(NO_SLOW, 'model: slow', '', 'Another'),
    'below/shared/c.yaml': 'members: {}',
    'notes.txt': '',
  });
  const result = testFolder(folder);
  expect('report' in result && result.report.results.map((each) => each.fixture.name)).toEqual([
    'A fixture',
    'Another',
  ]);
});

describe('coverage', () => {
  const uncovered = (text: string): string[] =>
    reportOn(text, { coverage: true }).coverage?.rules.uncovered.map(({ rule }) => rule.id) ?? ['none measured'];

  it('names the rules without which every request would end the same', () => {
    const rules = `${NO_SLOW}, twice: { deny_models: ['slo*'] }, never: { deny_models: [x] }, azure: { deny_providers: [azure] }`;
    expect(uncovered(fixture(rules, 'model: [slow, swift]', '{ model: swift, permit: acme/swift }'))).toEqual([
      'no-slow',
      'twice',
      'never',
    ]);
  });

  it('counts a rule that only narrows the candidates', () => {
    const text = fixture('cheap: { allow_pricing: { maxInputPrice: 1 } }', 'model: swift', '{ permit: acme/swift }');
    expect(uncovered(text)).toEqual([]);
  });

  it('counts a rule in mode report when the shadow shows it, and not for its type', () => {
    const { coverage } = reportOn(fixture(TRIAL, 'model: slow', '{ permit: all }'), { coverage: true });
    expect([coverage?.rules.covered, coverage?.kinds.covered]).toEqual([1, 0]);
    expect(uncovered(fixture(TRIAL, 'model: swift', '{ permit: all }'))).toEqual(['trial']);
  });

  it('counts for the scope and type of the rule', () => {
    const { coverage } = reportOn(fixture(NO_SLOW, 'model: slow', ''), { coverage: true });
    expect(coverage?.kinds.uncovered).toHaveLength(23);
    expect(coverage?.kinds.uncovered).not.toContainEqual({ scope: 'key', ruleType: 'deny_models' });
  });

  it('takes nothing from a skipped fixture', () => {
    expect(uncovered(`skip: later\n${fixture(NO_SLOW, 'model: slow', '')}`)).toEqual(['no-slow']);
  });

  it('takes a rule of an included file as one, covered by any of those who include it', () => {
    const using = (model: string, name: string) => `name: ${name}
given: { include: shared/rules.yaml }
requests: { model: ${model} }
expect: [${model === 'swift' ? '{ permit: all }' : ''}]
`;
    const folder = folderOf({
      'a.yaml': using('swift', 'One'),
      'b.yaml': using('slow', 'Two'),
      'shared/rules.yaml': `keys: { ci: { rules: { ${NO_SLOW} } } }${CATALOG.replaceAll('\n  ', '\n')}`,
    });
    expect(testFolder(folder, { coverage: true })).toMatchObject({
      report: { coverage: { rules: { covered: 1, total: 1, uncovered: [] } } },
    });
  });
});
