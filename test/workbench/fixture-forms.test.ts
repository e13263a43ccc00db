// What fixtures can say beyond one model and exact sets (issue 12, 9).
import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { faultsIn, folderOf, reportOn, testFolder } from './fixture-folder.ts';

const FOUR = `
  catalog:
    models:
      a: { providers: { acme: { inputPricePerMillion: 1, outputPricePerMillion: 1 } } }
      b: { providers: { acme: { inputPricePerMillion: 2, outputPricePerMillion: 2 } } }
      c: { providers: { other: { inputPricePerMillion: 3, outputPricePerMillion: 3 } } }
      d: { providers: { acme: { inputPricePerMillion: 4, outputPricePerMillion: 4 } } }
    custom: { own/a: {} }`;

const fixture = (rules: string, requests: string, expectations: string): string => `name: A fixture
given:${FOUR}
  keys: { ci: { rules: { ${rules} } } }
requests: { ${requests} }
expect: [${expectations}]
`;

/** What differs, request by request and write by write. */
const differencesIn = (text: string): object[] =>
  reportOn(text).results.flatMap(({ cases, writes }) =>
    [...cases, ...writes].flatMap(({ differences }) => differences),
  );

const NO_A = 'no-a: { deny_models: [a] }';
const NO_ACME = 'no-acme: { deny_providers: [acme] }';
const NOTHING = 'nothing: { allow_models: [none-such] }';
const OFFICE = 'office: { allow_ip_cidrs: [192.0.2.0/24] }';

describe('`model: auto` is judged as the gateway chooses', () => {
  it.each([
    ['the three cheapest that are permitted', NO_A, '{ permit: [acme/b, other/c, acme/d] }'],
    ['unknown prices last', NO_ACME, '{ permit: [other/c, own/a] }'],
    ['where nothing is permitted, why not', NOTHING, '{ deny: key allow_models, rules: nothing }'],
    ['as a set with some and without others', NO_A, '{ permit: { includes: acme/b, excludes: [acme/a, own/*] } }'],
  ])('%s', (_, rules, expectation) => {
    expect(differencesIn(fixture(rules, 'model: auto', expectation))).toEqual([]);
  });

  it('fails where another model is chosen', () => {
    expect(differencesIn(fixture(NO_A, 'model: auto', '{ permit: { includes: acme/a, excludes: acme/b } }'))).toEqual([
      { expected: 'permitted with acme/a, without acme/b', came: 'permitted acme/b, acme/d, other/c' },
    ]);
  });

  it('cannot be permitted all of more than three candidates', () => {
    expect(faultsIn({ 'a.yaml': fixture(NO_A, 'model: auto', '{ permit: all }') })).toEqual([
      'a.yaml:12:12: "auto" chooses at most 3 of its 5 candidates, never all.',
    ]);
  });
});

describe('a price of a fixture', () => {
  it.each([
    ['PricePerMillion', 'with its unit in the name'],
    ['Price', 'under its older name'],
  ])('input%s is in USD per million tokens, as a cap of a rule is: %s', (name) => {
    const text = `name: Prices
given:
  catalog: { models: { a: { providers: { acme: { input${name}: 2.5, output${name}: 10 } } } } }
  keys:
    at: { rules: { caps: { allow_pricing: { maxInputPrice: 2.5, maxOutputPrice: 10 } } } }
    below: { rules: { under: { allow_pricing: { maxInputPrice: 2.499999 } }, over: { deny_pricing: { maxOutputPrice: 9.999999 } } } }
requests: { key: [at, below], model: a }
expect:
  - { key: at, permit: all }
  - { key: below, deny: key deny_pricing, rules: over, violations: { acme/a: [over, under] } }
`;
    expect(differencesIn(text)).toEqual([]);
  });
});

describe('`action: list` is the list of models that a key sees', () => {
  it.each([
    ['exactly', NO_ACME, '{ permit: [other/c, own/a] }'],
    ['with some and without others', NO_ACME, '{ permit: { includes: own/a, excludes: acme/* } }'],
    ['empty, and answered', NOTHING, '{ permit: none }'],
    ['empty, written as a list', NOTHING, '{ permit: [] }'],
    ['empty, and not listed', NOTHING, ''],
  ])('%s', (_, rules, expectation) => {
    expect(differencesIn(fixture(rules, 'action: list', expectation))).toEqual([]);
  });

  it('differs by address, and fails where it is not as expected', () => {
    const requests = 'action: list, address: [192.0.2.1, unknown]';
    expect(differencesIn(fixture(OFFICE, requests, '{ address: 192.0.2.1, permit: all }'))).toEqual([]);
    const wrong = '{ permit: { includes: other/*, excludes: own/a } }';
    const { results } = reportOn(fixture(NO_ACME, 'action: list', wrong));
    expect(results[0]?.cases.map(({ label, differences }) => ({ label, differences }))).toEqual([
      {
        label: 'action=list',
        differences: [{ expected: 'permitted without own/a', came: 'permitted other/c, own/a' }],
      },
    ]);
  });

  it.each([
    ['requests: { action: list, model: a }', 12, 'The action `list` stands alone, without a model and a provider.'],
    ['requests: { action: [list, chat], model: a }', 12, 'The action `list` stands alone'],
  ])('takes no model: %s', (requests, line, message) => {
    const [fault] = faultsIn({ 'a.yaml': fixture(NO_A, 'x: y', '').replace('requests: { x: y }', requests) });
    expect(fault).toContain(`a.yaml:${line - 1}:1: ${message}`);
  });

  it.each(['deny: any', 'permit: all, shadow: { permit: all }', 'permit: all, violations: { acme/a: no-a }'])(
    'has no { %s }',
    (expectation) => {
      const [fault] = faultsIn({ 'a.yaml': fixture(NO_A, 'action: list', `{ ${expectation} }`) });
      expect(fault).toMatch(/^a\.yaml:12:10: A list has no `(deny|shadow|violations)`/);
    },
  );

  it('is what the policy permits of the whole catalogue', () => {
    const text = fixture(
      NO_ACME,
      'action: list',
      '{ permit: { includes: [sandbox/*, openai/*], excludes: anthropic/* } }',
    )
      .replace(FOUR, '\n  catalog: real')
      .replace(NO_ACME, 'no: { deny_providers: [anthropic] }');
    const realCatalog = () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
    expect(reportOn(text, { realCatalog }).results.map(({ status }) => status)).toEqual(['passed']);
  });
});

describe('a set', () => {
  it('of rules can include and exclude as well', () => {
    const rules = `${NO_A}, again: { deny_models: [a] }`;
    const named = (set: string) => fixture(rules, 'model: acme/a', `{ deny: any, rules: { ${set} } }`);
    expect(differencesIn(named('includes: no-a'))).toEqual([]);
    expect(differencesIn(named('excludes: no-a'))).toEqual([
      { expected: 'rules without no-a', came: 'rules again, no-a' },
    ]);
    expect(faultsIn({ 'a.yaml': named('includes: no-b') })).toEqual(['a.yaml:12:32: There is no active rule "no-b".']);
  });

  it('that means no candidate is a slip', () => {
    const excluded = (entry: string) => fixture(NO_A, 'model: b', `{ permit: { excludes: '${entry}' } }`);
    expect(faultsIn({ 'a.yaml': excluded('acem/*') })).toEqual(['a.yaml:12:22: No candidate of "b" begins so.']);
    expect(faultsIn({ 'a.yaml': excluded('acme/a') })).toEqual([
      'a.yaml:12:22: "acme/a" is no candidate of "b", which has acme/b.',
    ]);
  });

  it('of a shadow can be empty: `permit: []`', () => {
    const trial = 'trial: { deny_models: [a], mode: report }';
    const shadow = (set: string) =>
      fixture(trial, 'model: acme/a', `{ permit: all, shadow: { permit: ${set}, wouldDeny: trial } }`);
    expect(differencesIn(shadow('[]'))).toEqual([]);
    expect(differencesIn(shadow('{ excludes: acme/a }'))).toEqual([]);
    expect(differencesIn(shadow('all'))).toEqual([
      { expected: 'shadow permitted acme/a', came: 'shadow permitted none' },
    ]);
  });
});

describe('a rule in the API’s form', () => {
  const api = (value: string) => `no-a: { ruleType: deny_models, ruleValue: ${value} }`;

  it('is the same rule', () => {
    const expectation = '{ deny: key deny_models, rules: no-a }';
    expect(differencesIn(fixture(api('{ models: [a] }'), 'model: acme/a', expectation))).toEqual([]);
  });

  it.each([
    ['a wrong value', api('{ providers: [acme] }'), '57: /ruleValue/models is missing.'],
    ['a value without a type', 'no-a: { ruleValue: { models: [a] } }', '26: /ruleType is missing.'],
    [
      'both forms at once',
      'no-a: { ruleType: deny_models, deny_models: [a] }',
      '26: A rule has exactly one rule type: one of allow_models, ',
    ],
  ])('is a fault with %s', (_, rules, fault) => {
    expect(faultsIn({ 'a.yaml': fixture(rules, 'model: b', '{ permit: all }') })).toEqual([
      expect.stringContaining(`a.yaml:10:${fault}`),
    ]);
  });
});

describe('a write of a rule', () => {
  const writes = (...entries: string[]) => `name: Writes
given:${FOUR}
writes:
${entries.map((entry) => `  - { ${entry} }`).join('\n')}
`;

  it('is answered as the API answers it, in its form or the short one', () => {
    const text = writes(
      'rule: { deny_models: [a] }, warnings: []',
      'rule: { ruleType: deny_providers, ruleValue: { providers: [acmee] } }, warnings: ["did you mean `acme`?"]',
      'rule: { allow_ip_cidrs: [10.0.0.0/8] }, warnings: [TRUSTED_PROXIES is not set]',
      'rule: { allow_ip_cidrs: [10.0.0.0/8] }, trustedProxies: none, warnings: []',
      'rule: { allow_ip_cidrs: [10.0.0.1] }, refused: /ruleValue/ipCidrs/0 is not a CIDR range',
      'rule: { deny_models: [a], colour: red }, refused: /colour',
      'rule: { status: active }, refused: /ruleType is missing.',
    );
    const { results } = reportOn(text);
    expect(results[0]?.writes.map(({ label, differences }) => [label, differences])).toEqual(
      [1, 2, 3, 4, 5, 6, 7].map((number) => [`write=${number}`, []]),
    );
  });

  it('fails where it is answered otherwise', () => {
    const text = writes(
      'rule: { deny_models: [wxyz] }, warnings: []',
      'rule: { deny_models: [a] }, refused: anything',
      'rule: { deny_models: [] }, warnings: []',
    );
    expect(differencesIn(text)).toEqual([
      {
        expected: 'stored without a warning',
        came: 'stored, warning: "wxyz" is not the name of a model in the catalogue.',
      },
      { expected: 'refused: anything', came: 'stored without a warning' },
      { expected: 'stored without a warning', came: 'refused: /ruleValue/models must hold at least one entry.' },
    ]);
  });

  it('has one thing that is expected of it, and a fixture has requests or writes', () => {
    expect(
      faultsIn({
        'a.yaml': writes('rule: { deny_models: [x] }'),
        'b.yaml': writes('rule: {}, warnings: [], refused: x'),
        'c.yaml': `name: C\ngiven:${FOUR}\n`,
      }),
    ).toEqual([
      'a.yaml:11:5: A write has exactly one of warnings and refused.',
      'b.yaml:11:5: A write has exactly one of warnings and refused.',
      'c.yaml:1:1: A fixture has requests, writes or both.',
    ]);
  });
});

describe('an anchor', () => {
  it('is used again by its alias, more than a hundred times, and merged', () => {
    const keys = Array.from({ length: 150 }, (_, index) => `k${index}: *ci`).join(', ');
    const text = `name: Anchors
anchors:
  rules: &rules { no-d: { deny_models: [d] } }
  ci: &ci {}
given:${FOUR}
  keys: { ci: { rules: { <<: *rules, ${NO_A} } }, ${keys} }
requests: { key: &keys [ci, k149], model: [acme/a, d] }
expect:
  - { key: ci, deny: any }
  - { key: k149, permit: all }
`;
    expect(differencesIn(text)).toEqual([]);
    expect(faultsIn({ 'a.yaml': text.replace('[d] }', '[d], mode: no }') })).toEqual([
      'a.yaml:3:45: /given/keys/ci/rules/no-d/mode ("no") must be one of enforce, report.',
    ]);
  });

  it('cannot stand in itself', () => {
    expect(faultsIn({ 'a.yaml': 'name: &a [*a]\n' })).toEqual(['a.yaml:1:10: YAML: An alias stands in what it means.']);
  });
});

describe('a run', () => {
  it('asks for the catalogue of the installation once, however many fixtures name it, and tells how far it is', () => {
    const text = (name: string) => fixture(NO_A, 'model: sandbox-free', '{ permit: all }').replace('A fixture', name);
    const real = ['One', 'Two', 'Three'].map((name) => text(name).replace(FOUR, '\n  catalog: real'));
    const folder = folderOf({ 'a.yaml': real.slice(0, 2).join('---\n'), 'b.yaml': real[2] ?? '' });
    const told: string[] = [];
    let made = 0;
    testFolder(folder, {
      realCatalog: () => {
        made += 1;
        return createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
      },
      coverage: true,
      onProgress: (stage, done, all) => told.push(`${stage} ${done}/${all}`),
    });
    expect(made).toBe(1);
    expect(told).toEqual([
      'reading 1/2',
      'reading 2/2',
      'running 1/3',
      'running 2/3',
      'running 3/3',
      'measuring 0/3',
      'measuring 1/3',
      'measuring 2/3',
    ]);
  });
});
