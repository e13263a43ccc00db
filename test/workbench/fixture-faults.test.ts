// A fixture that makes no sense is named by file, line and column, and nothing is run.
import { describe, expect, it } from 'vitest';
import { faultsIn } from './fixture-folder.ts';

const GIVEN = `name: A fixture
given:
  catalog: { models: { swift: { aliases: fast, providers: { acme: { inputPricePerMillion: 1, outputPricePerMillion: 1 }, azure: {} } } } }
  members: { dev: {} }
  keys:
    ci: { owner: dev, rules: { no-swift: { deny_models: [swift] }, trial: { deny_models: [x], mode: report } } }
`;
const SOUND = `${GIVEN}requests: { model: swift }
expect:
  - { deny: key deny_models }
`;

/** Replaces one text of the sound fixture; the one fault must stand at the mark `¦` and begin so. */
function expectFault(text: string, by: string, message: string): void {
  if (!SOUND.includes(text)) throw new Error(`"${text}" is not in the fixture`);
  expectFaultAtMark(SOUND.replace(text, by), message);
}

function expectFaultAtMark(marked: string, message: string): void {
  const before = marked.slice(0, marked.indexOf('¦')).split('\n');
  const expected = `a.yaml:${before.length}:${(before.at(-1) ?? '').length + 1}: ${message}`;
  const [first = '', ...others] = faultsIn({ 'a.yaml': marked.replace('¦', '') });
  expect([first.slice(0, expected.length), others]).toEqual([expected, []]);
}

it('is silent about a sound fixture', () => expect(faultsIn({ 'a.yaml': SOUND })).toEqual([]));

describe('names, with its place,', () => {
  it.each([
    ['a map that does not end', 'model: swift }\n', 'model: swift\n¦', 'YAML: '],
    ['a name that comes twice in a map', '{ dev: {} }', '{ dev: {}, ¦dev: {} }', 'YAML: Map keys must be unique'],
    ['an anchor that is not there', '{ dev: {} }', '{ dev: ¦*nobody }', 'YAML: There is no anchor "nobody" before it'],
    ['a tag that is unknown', 'aliases: fast', 'aliases: ¦!secret fast', 'YAML: Unresolved tag: !secret.'],
    ['a list where a map must be', SOUND, '¦- name\n- given\n', 'A map is expected here.'],
  ])('%s', (_, text, by, message) => expectFault(text, by, message));

  const inRule = '/given/keys/ci/rules';

  it.each([
    ['an unknown field', 'deny: key', '¦denied: key', '/expect/0/denied ("key deny_models") is not a known field.'],
    ['an unknown field of a rule', 'mode:', '¦modus:', `${inRule}/trial/modus ("report") is not a known field.`],
    ['a missing field', 'requests: { model: swift }', '¦requests: {}', '/requests/model is missing.'],
    ['a number as a name', 'model: swift', '¦model: 1.5', '/requests/model (1.5) must be of type string or array.'],
    [
      'a reason that is none',
      'deny: key deny_models',
      '¦deny: key deny_model',
      '/expect/0/deny ("key deny_model") must be `any`',
    ],
    ['a skip without a reason', 'given:', '¦skip: ""\ngiven:', '/skip ("") must NOT have fewer than 1 characters.'],
  ])('%s', (_, text, by, message) => expectFault(text, by, message));

  const rule = 'deny_models: [swift]';
  const range = '/deny_ip_cidrs/1 is not a CIDR range: "192.0.2.1" has no prefix length';

  it.each([
    [
      'a rule of two types',
      `no-swift: { ${rule}`,
      `¦no-swift: { ${rule}, allow_models: [x]`,
      'A rule has exactly one rule type',
    ],
    ['a rule of no type', `no-swift: { ${rule}`, '¦no-swift: { status: active', 'A rule has exactly one rule type'],
    [
      'a wildcard in the middle',
      rule,
      "deny_models: [a, ¦'s*t']",
      `${inRule}/no-swift/deny_models/1 ("s*t") must be a model id`,
    ],
    ['a bare address as a range', rule, 'deny_ip_cidrs: [192.0.2.0/24, ¦192.0.2.1]', range],
    [
      'a cap with seven places',
      rule,
      'deny_pricing: { ¦maxInputPrice: "0.0000001" }',
      'An amount may have at most 6 decimal places.',
    ],
    [
      'a price that is none',
      'inputPricePerMillion: 1,',
      '¦inputPricePerMillion: cheap,',
      'An amount must be a plain decimal number, such as "12.5".',
    ],
    [
      'a price under both of its names',
      'inputPricePerMillion: 1,',
      'inputPricePerMillion: 1, ¦inputPrice: 1,',
      '/inputPrice is the older name of inputPricePerMillion: give one of them.',
    ],
    [
      'a model id with a slash',
      'swift: { aliases',
      '¦acme/swift: { aliases',
      '"acme/swift" is not a canonical model id.',
    ],
    [
      'a custom model alone',
      'catalog: {',
      'catalog: { custom: { ¦gauge: {} },',
      '"gauge" is not <custom provider>/<model>.',
    ],
    [
      "a custom model's id at its provider",
      'catalog: {',
      'catalog: { custom: { lab/gauge: { ¦externalId: gauge-2 } },',
      'A custom model has one name, and none by its provider.',
    ],
    [
      'a catalogue that is not there',
      /catalog: .*/.exec(GIVEN)?.[0] ?? '',
      '¦catalog: unreal',
      'A catalogue is `real`, or holds models.',
    ],
    ['an owner who is not given', 'owner: dev', '¦owner: ops', 'There is no member "ops".'],
    [
      'proxies that are none',
      'members:',
      'addresses: { far: { ¦trustedProxies: ten } }\n  members:',
      '"ten" has no prefix length',
    ],
  ])('of what is given, %s', (_, text, by, message) => expectFault(text, by, message));

  it('of what is given, two rules of one id', () => {
    const member = '{ dev: { rules: { trial: { deny_models: [y] } } } }';
    const fixture = SOUND.replace('{ dev: {} }', member).replace(
      ' trial: { deny_models: [x]',
      ' ¦trial: { deny_models: [x]',
    );
    expectFaultAtMark(fixture, 'There are two rules "trial".');
  });

  it.each([
    [
      'a model that nothing serves',
      'model: swift',
      'model: [swift, ¦swfit]',
      'Nothing serves the model "swfit"; expect `error: not_found`',
    ],
    ['a key that is not given', '{ model: swift', '{ ¦key: cd, model: swift', 'key "cd": no such key is given.'],
    [
      'an unknown provider',
      '{ model: swift',
      '{ provider: [acme, ¦acne], model: swift',
      'provider "acne": the catalogue has no such provider.',
    ],
    [
      'an unknown action',
      '{ model: swift',
      '{ ¦action: chats, model: swift',
      'action "chats": it is one of chat, moderation, image, list.',
    ],
    [
      'an address that is none',
      '{ model: swift',
      '{ ¦address: 192.0.2.300, model: swift',
      'address "192.0.2.300": it is an address',
    ],
    ['a value that comes twice', 'model: swift', 'model: [swift, ¦swift]', 'model "swift": it comes twice.'],
  ])('of the requests, %s', (_, text, by, message) => expectFault(text, by, message));

  it('of the requests, that they do not say which key', () => {
    const fixture = SOUND.replace('    ci: {', '    cd: {}\n    ci: {').replace('requests:', '¦requests:');
    expectFaultAtMark(fixture, 'There are several keys: say which ones, by `key`.');
  });

  it('of the requests, that they are too many', () => {
    const addresses = Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`).join(', ');
    const models = Array.from({ length: 11 }, (_, index) => `m${index}`).join(', ');
    const requests = `¦requests: { model: [${models}], address: [${addresses}] }`;
    expectFault('requests: { model: swift }', requests, 'These are 11000 requests; at most 10000 fit.');
  });

  const ONE_OUTCOME = 'An expectation has exactly one of permit, deny and error.';

  it.each([
    ['no outcome', '{ deny: key deny_models', '¦{ model: swift', ONE_OUTCOME],
    ['two outcomes', '{ deny: key', '¦{ permit: all, deny: key', ONE_OUTCOME],
    ['an unknown rule', 'key deny_models', 'any, rules: [no-swift, ¦no-sweft]', 'There is no active rule "no-sweft".'],
    ['a rule with a permit', 'deny: key deny_models', 'permit: all, ¦rules: no-swift', '`rules` goes with `deny`.'],
    [
      'a candidate that cannot be',
      'deny: key deny_models',
      'permit: [acme/swift, ¦lab/swift]',
      '"lab/swift" is no candidate of "swift", which has acme/swift, azure/swift.',
    ],
    [
      'a violation by none',
      'key deny_models',
      'any, violations: { ¦lab/swift: no-swift }',
      '"lab/swift" is no candidate of "swift"',
    ],
    [
      'a shadow by an enforced rule',
      'key deny_models',
      'any, shadow: { permit: none, ¦wouldDeny: no-swift }',
      'The rule "no-swift" is not in mode `report`.',
    ],
    ['a request that there is not', 'deny: key', '¦model: fast, deny: key', 'No request has the model "fast".'],
    ['one request twice', '- { deny: key', '- { deny: any }\n  - ¦{ deny: key', 'Two expectations mean model=swift.'],
    ['not_found of what is there', '{ deny: key deny_models', '¦{ error: not_found', '"swift" has a candidate.'],
    [
      'a decision with an error',
      'deny: key deny_models',
      'error: unavailable, ¦shadow: { permit: none }',
      'There is no decision where there is an error.',
    ],
  ])('of what is expected, %s', (_, text, by, message) => expectFault(text, by, message));
});

it('names a permit of what has no candidate', () => {
  const fixture = SOUND.replace('catalog: {', 'catalog: { withoutCredential: acme,')
    .replace('{ model: swift }', '{ model: swift, provider: [azure, acme] }')
    .replace('{ deny: key', '¦{ deny: key');
  expectFaultAtMark(fixture, '"acme/swift" has no candidate: only `error: not_found` can come.');
});

const SLICE = 'catalog: { models: { swift: { providers: { acme: {} } } } }';

it.each([
  ['a file that is not there', 'a.yaml:3:3: There is no file shared/x.yaml.', undefined],
  ['an empty file', 'a.yaml:3:3: shared/x.yaml is empty.', '# nothing'],
  [
    'a fault in the file',
    'shared/x.yaml:2:10: /members/ops/rule is not a known field.',
    'members:\n  ops: { rule: {} }',
  ],
  [
    'an include in the file',
    'shared/x.yaml:2:1: An included file includes nothing itself.',
    'members: {}\ninclude: y.yaml',
  ],
  [
    'a second document in it',
    'shared/x.yaml:3:1: An included file holds one document.',
    'members: {}\n---\nmembers: {}',
  ],
  ['someone who is given twice', 'a.yaml:5:14: The member "dev" is given twice.', 'members: { dev: {} }'],
  ['a key that is given twice', 'a.yaml:7:5: The key "ci" is given twice.', 'keys: { ci: {} }'],
  ['a model that is given twice', 'a.yaml:4:24: The model "swift" is given twice.', SLICE],
  [
    'a slice with the real catalogue',
    'shared/x.yaml:1:1: The catalogue is either `real` or a slice, not both.',
    'catalog: real',
  ],
] as const)('names, of what is included, %s', (_, fault, shared) => {
  const text = SOUND.replace('given:\n', 'given:\n  include: shared/x.yaml\n');
  expect(faultsIn({ 'a.yaml': text, ...(shared === undefined ? {} : { 'shared/x.yaml': shared }) })).toEqual([fault]);
});

const RULE = {
  id: 'rule_1',
  createdAt: '',
  updatedAt: '',
  ruleType: 'deny_models',
  ruleValue: { models: ['swift'] },
  status: 'active',
  mode: 'enforce',
  description: null,
  apiKeyId: 'key_1',
};
const listed = (...rules: object[]) => JSON.stringify({ rules, nextCursor: null }, null, 1);

it.each([
  ['a file that is not there', 'a.yaml:4:21: There is no file rules.json.', undefined],
  ['what is not a list of rules', 'rules.json:1:1: /rules is missing.', '{}'],
  [
    'rules of several owners',
    'rules.json:18:3: These rules belong to several owners: name one when you list them.',
    listed(RULE, { ...RULE, apiKeyId: 'key_2' }),
  ],
  [
    'a rule that is none',
    'rules.json:8:4: /ruleValue/models is missing.',
    listed({ ...RULE, ruleValue: { providers: ['acme'] } }),
  ],
] as const)('names, of rules from a file, %s', (_, fault, content) => {
  const text = SOUND.replace('{ dev: {} }', '{ dev: { rulesFrom: rules.json } }');
  expect(faultsIn({ 'a.yaml': text, ...(content === undefined ? {} : { 'rules.json': content }) })).toEqual([fault]);
});

it('names every fixture that makes no sense, and the name that two of them have', () => {
  const named = (name: string, text = SOUND): string => text.replace('A fixture', name);
  const wrong = SOUND.replace('deny: key', 'denied: key');
  const first = [named('One'), named('Two', wrong), named('Three', wrong)].join('---\n');
  expect(faultsIn({ 'a.yaml': first, 'b.yaml': named('One') })).toEqual([
    'a.yaml:19:7: /expect/0/denied ("key deny_models") is not a known field.',
    'a.yaml:29:7: /expect/0/denied ("key deny_models") is not a known field.',
    'b.yaml:1:1: The name "One" is taken by a.yaml:1.',
  ]);
});

it('names a file without a fixture, and one that is too large', () => {
  expect(faultsIn({ 'a.yaml': '# later\n', 'b.yaml': '---\n', 'c.yaml': ' '.repeat(1_000_001) })).toEqual([
    'a.yaml:1:1: The file holds no fixture.',
    'b.yaml:1:1: The file holds no fixture.',
    'c.yaml:1:1: c.yaml is larger than 1000000 bytes.',
  ]);
});

it('names aliases that multiply beyond measure', () => {
  const lines = ['a: &a [x, x, x, x, x, x, x, x, x, x]'];
  for (const [before, now] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh'].map((pair) => pair.split(''))) {
    lines.push(`${now}: &${now} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]`);
  }
  expect(faultsIn({ 'a.yaml': lines.join('\n') })[0]).toBe(
    'a.yaml:1:1: YAML: With its aliases written out a document has at most 200000 values.',
  );
});
