// A policy folder's files: put together, with the place of everything; written as a pull writes them; tested by fixtures.
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PolicyFolder } from '../../../src/generated/types.ts';
import { placeText } from '../../../src/workbench/fixtures/fixture-reports.ts';
import { FixtureSources } from '../../../src/workbench/fixtures/fixture-source.ts';
import { folderRules } from '../../../src/workbench/folder/folder-rules.ts';
import {
  folderFiles,
  policyFiles,
  type ReadFolder,
  readPolicyFolder,
} from '../../../src/workbench/folder/policy-folder.ts';
import { faultsIn, folderOf, reportOn } from '../fixture-folder.ts';

const read = (files: Readonly<Record<string, string>>) => {
  const folder = folderOf(files);
  return { folder, result: readPolicyFolder(folder, new FixtureSources()) };
};

function readable(files: Readonly<Record<string, string>>): ReadFolder & { readonly folder: string } {
  const { folder, result } = read(files);
  if ('faults' in result) throw result.faults[0] ?? new Error('no fault');
  return { ...result, folder };
}

function faults(files: Readonly<Record<string, string>>): string[] {
  const { folder, result } = read(files);
  if (!('faults' in result)) return [];
  return result.faults.map(({ place, message }) => `${placeText(place, folder)}: ${message}`);
}

const FREE = '{ ruleType: allow_pricing, ruleValue: { pricingType: free } }';
const free = { ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } };

describe('the files of a folder', () => {
  const files = {
    'base.yaml': `source: security
organization:
  rules:
    a: ${FREE}
`,
    'teams/one.yml': `organization: { rules: { b: ${FREE} } }
keys:
  CI:
    rules:
      a: ${FREE}
---
keys: { CI: { rules: { b: ${FREE} } } }
`,
    'teams/note.txt': 'not read',
    '.git/config.yaml': 'not: read',
  };

  it('are one document', () => {
    expect(readable(files).document).toEqual({
      source: 'security',
      organization: { rules: { a: free, b: free } },
      keys: { CI: { rules: { a: free, b: free } } },
    });
    const { folder } = readable(files);
    expect(policyFiles(path.join(folder, 'base.yaml'))).toEqual([path.join(folder, 'base.yaml')]);
  });

  it('are found again for whatever is said about the document', () => {
    const { folder, placeOf } = readable(files);
    const places = [
      '/organization/rules/a/ruleValue',
      '/organization/rules/b',
      '/keys/CI/rules/a/ruleValue/models/0',
      '/keys/CI/rules/b',
      '/keys/CI',
      '/elsewhere',
    ].map((pointer) => placeText(placeOf(pointer), folder));
    expect(places).toEqual([
      'base.yaml:4:35',
      'teams/one.yml:1:26',
      'teams/one.yml:5:37',
      'teams/one.yml:7:24',
      'teams/one.yml:3:3',
      'base.yaml:1:1',
    ]);
  });

  it('are refused with the place of each fault', () => {
    expect(
      faults({
        'a.yaml': 'source: one\nkeys:\n  CI: { rules: { a: {} } }\n',
        'b.yaml': 'source: two\n',
        'c.yaml': 'keys:\n  CI:\n    rules:\n      a: {}\n',
        'd.yaml': 'keys: [CI]\n',
        'e.yaml': 'organization: { rules: { a_b: {} } }\n',
        'f.yaml': 'group: {}\n',
        'g.yaml': '- 1\n',
        'h.yaml': 'keys: {a: 1, a: 2}\n',
        'i.yaml': 'source: a b\n',
      }),
    ).toEqual([
      'b.yaml:1:1: /source ("two") is "one" in another file.',
      'c.yaml:4:7: /keys/CI/rules/a is stated in another file too.',
      'd.yaml:1:1: /keys must be of type object.',
      'e.yaml:1:26: /organization/rules/a_b must be a rule whose name is at most 64 letters, digits, dots and hyphens, the first of them a letter or a digit.',
      'f.yaml:1:1: /group is not a known field.',
      'g.yaml:1:1: The request body must be of type object.',
      'h.yaml:1:14: YAML: Map keys must be unique.',
      'i.yaml:1:1: /source ("a b") must be at most 128 letters, digits and . _ : @ / -, the first of them a letter or a digit.',
    ]);
  });

  it('must be there: a folder without any, such as a misspelt one, states nothing', () => {
    expect(faults({ 'README.md': '' })).toEqual([':1:1: The folder holds no .yaml or .yml file.']);
  });
});

describe('what a pull writes', () => {
  const written = (document: PolicyFolder): ReadFolder & { readonly names: string[] } => {
    const files = folderFiles(document);
    return { ...readable(Object.fromEntries(files)), names: [...files.keys()] };
  };

  it('reads back as it was, whatever the names', () => {
    const names = [
      '__proto__',
      '<<',
      'a: b # c',
      '123',
      'no',
      '../x',
      '…',
      'A b',
      'a-b',
      '*x',
      '&y',
      'a\nb',
      'x'.repeat(300),
    ];
    const document: PolicyFolder = {
      source: 'policy',
      members: { 'a@example.com': { rules: { first: { ...free, description: 'yes: # "' } } } },
      keys: Object.fromEntries(names.map((name) => [name, { rules: { 'a.b': free } }])),
    };
    const { document: again, names: files } = written(document);
    expect(again).toEqual(document);
    expect(Object.keys(again.keys ?? {}).toSorted()).toEqual(names.toSorted());
    expect(new Set(files.map((file) => file.toLowerCase())).size).toBe(files.length);
    expect(files.filter((file) => !/^(?:keys\/|members\/)?[a-z0-9@_.+-]{1,100}\.(?:yaml|json)$/.test(file))).toEqual(
      [],
    );
  });

  it('has a schema in one piece that its files keep to, and faulty ones do not', () => {
    const files = folderFiles({ organization: { rules: { a: free } }, keys: { CI: { rules: { a: free } } } });
    const schema: unknown = JSON.parse(files.get('policy-folder.schema.json') ?? '');
    const validate = new Ajv2020({ strict: false }).compile(Object(schema));
    const texts = [...files].filter(([name]) => name.endsWith('.yaml'));
    for (const [, text] of texts) expect(validate(parse(text))).toBe(true);
    expect(texts.map(([name, text]) => [name, text.split('\n', 1)[0]])).toEqual([
      ['organization.yaml', '# yaml-language-server: $schema=policy-folder.schema.json'],
      ['keys/ci.yaml', '# yaml-language-server: $schema=../policy-folder.schema.json'],
    ]);
    const wrong = { ruleType: 'deny_models', ruleValue: { pricingType: 'free' } };
    expect(validate({ organization: { rules: { a: wrong } } })).toBe(false);
    expect(validate({ organization: { rules: { a_b: free } } })).toBe(false);
  });
});

describe('fixtures on the rules of a folder', () => {
  const FIXTURE = `name: The CI key reaches free models only
given:
  catalog: real
  members:
    Dev@example.com: { rules: { own: { deny_models: [sandbox-free] } } }
  groups: { staff: { members: [Dev@example.com] } }
  keys:
    CI: { owner: Dev@example.com, rules: { only-free: { allow_pricing: { pricingType: free } } } }
requests:
  model: [sandbox-free, sandbox-paid]
expect:
  - { model: sandbox-free, permit: all }
  - { model: sandbox-paid, deny: key allow_pricing, rules: only-free }
`;
  const folder = (rule: string, rest = ''): Record<string, string> => ({
    'rules.yaml': `keys:\n  CI:\n    rules:\n      free: ${rule}\n${rest}`,
  });
  const resultOf = (files: Record<string, string>) =>
    reportOn(FIXTURE, { rules: folderRules(readable(files)), coverage: true });

  it('judge by those of the same names alone, under the names of the fixture where the rules are the same', () => {
    expect(resultOf(folder(FREE)).results.map(({ status }) => status)).toEqual(['passed']);
    const [failed] = resultOf(folder(`${FREE.slice(0, -1)}, mode: report }`)).results;
    expect(failed?.status).toBe('failed');
    const group = `groups:\n  staff:\n    rules:\n      none: { ruleType: deny_models, ruleValue: { models: ['*'] } }\n`;
    expect(resultOf(folder(FREE, group)).results.map(({ status }) => status)).toEqual(['failed']);
    const member = `members:\n  dev@example.com:\n    rules:\n      none: { ruleType: deny_models, ruleValue: { models: ['*'] } }\n`;
    expect(resultOf(folder(FREE, member)).results.map(({ status }) => status)).toEqual(['failed']);
  });

  it('cover the rules of the folder, those that no fixture needs included', () => {
    const { coverage } = resultOf(
      folder(
        FREE,
        `      dead: { ruleType: deny_models, ruleValue: { models: [x] } }\norganization: { rules: { other: { ruleType: deny_models, ruleValue: { models: [y] } } } }\n`,
      ),
    );
    expect(coverage?.rules.uncovered.map(({ scope, rule: { id }, place }) => [scope, id, place?.line])).toEqual([
      ['organization', 'other', 6],
      ['key', 'dead', 5],
    ]);
  });

  it('are not run for a key of which neither they nor the folder say anything, where it states keys', () => {
    const fixture = (given: string): string => `name: Free models are permitted
given: { catalog: real, ${given} }
requests: { model: sandbox-free }
expect: [{ permit: all }]
`;
    const faults = (given: string, files: Record<string, string>) =>
      faultsIn({ 'a.yaml': fixture(given) }, { rules: folderRules(readable(files)) });
    const fault = (column: number, name: string): string =>
      `a.yaml:2:${column}: The policy folder states no key "${name}", and the fixture gives it neither an owner nor a group: is it misspelt?`;

    expect(faults('keys: { CI: {}, CL: {} }', folder(FREE))).toEqual([fault(41, 'CL')]);
    expect(faults('groups: { staff: { keys: CI } }, keys: { CI: {}, constructor: {} }', folder(FREE))).toEqual([
      fault(74, 'constructor'),
    ]);
    expect(faults('members: { dev: {} }, keys: { CL: { owner: dev } }', folder(FREE))).toEqual([]);
    expect(faults('groups: { staff: { keys: CL } }, keys: { CL: {} }', folder(FREE))).toEqual([]);
    expect(faults('keys: {}', folder(FREE))).toEqual([]);
    expect(faults('keys: { CL: {} }', { 'rules.yaml': 'organization: { rules: {} }' })).toEqual([]);
  });

  it('are not run where a rule of the folder makes no sense', () => {
    const { result } = read(folder('{ ruleType: deny_models, ruleValue: { models: [] } }'));
    if ('faults' in result) throw new Error('its shape is right');
    expect(() => folderRules(result)).toThrow('/ruleValue/models must hold at least one entry.');
    expect(faultsIn({ 'a.yaml': FIXTURE }, { rules: folderRules(readable(folder(FREE))) })).toEqual([]);
  });
});
