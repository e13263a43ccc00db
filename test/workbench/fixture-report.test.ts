// The three forms of a report, whole.
import { expect, it } from 'vitest';
import { jsonReport } from '../../src/workbench/fixtures/report-json.ts';
import { junitReport } from '../../src/workbench/fixtures/report-junit.ts';
import { type TextOptions, textReport } from '../../src/workbench/fixtures/report-text.ts';
import { folderOf, testFolder } from './fixture-folder.ts';

const FILE = `name: Slow is denied & fast is <not>
given:
  catalog: { models: { slow: { providers: { acme: {} } }, fast: { providers: { acme: {} } } } }
  keys: { ci: { rules: { no-slow: { deny_models: [slow] }, never: { deny_models: [x] } } } }
requests: { model: [slow, fast], address: ['::1', unknown] }
expect:
  - { model: slow, permit: all }
  - { model: fast, permit: all }
---
name: "Later\\u001b[31m"
skip: waits for a decision
given: { catalog: { models: { slow: { providers: { acme: {} } } } } }
requests: { model: slow }
expect: [{ permit: all }]
`;

function report() {
  const cwd = folderOf({ 'cases/a.yaml': FILE });
  const result = testFolder(cwd, { coverage: true });
  if ('faults' in result) throw result.faults[0];
  return { report: result.report, cwd };
}

const plain: TextOptions['paint'] = (_, text) => text;
const MESSAGE = 'Access denied: model not allowed: slow is denied by rule no-slow.';

const ALL = ['models', 'providers', 'pricing', 'ip_cidrs'].flatMap((kind) => [`allow_${kind}`, `deny_${kind}`]);

it('as text for people', () => {
  const { report: each, cwd } = report();
  const lines = textReport(each, { cwd, paint: plain }).split('\n');
  expect(lines.slice(0, 12)).toEqual([
    'FAILED  Slow is denied & fast is <not>  cases/a.yaml:1:1',
    '        model=slow address=::1  cases/a.yaml:7:5',
    '          expected  permit acme/slow',
    `          came      deny key deny_models (${MESSAGE})`,
    '        model=slow address=unknown  cases/a.yaml:7:5',
    '          expected  permit acme/slow',
    `          came      deny key deny_models (${MESSAGE})`,
    'skipped Later [31m                      cases/a.yaml:10:1',
    '        waits for a decision',
    '',
    `2 fixtures: 0 passed, 1 failed, 1 skipped; 4 requests (policy ${each.bundleDigest.slice(0, 12)})`,
    '',
  ]);
  expect(lines.slice(12)).toEqual([
    'rules that decide a request  1 of 2 (50 %)',
    '  not covered: never (key ci, deny_models)  cases/a.yaml:4:60',
    'rule types by scope          1 of 24 (4.1 %)',
    `  not covered: organization ${ALL.join(', ')}`,
    `  not covered: member ${ALL.join(', ')}`,
    `  not covered: key ${ALL.filter((type) => type !== 'deny_models').join(', ')}`,
  ]);
});

it('in colour where colours are shown', () => {
  const { report: each, cwd } = report();
  const text = textReport(each, { cwd, paint: (colour, inside) => `<${colour}>${inside}</>` });
  expect(text.split('\n')[0]).toBe('<red>FAILED </> Slow is denied & fast is <not>  <dim>cases/a.yaml:1:1</>');
  expect(text).toContain('expected  <green>permit acme/slow</>');
});

it('as JSON', () => {
  const { report: each, cwd } = report();
  const json = JSON.parse(JSON.stringify(jsonReport(each, cwd)));
  expect(json).toMatchObject({ bundleDigest: each.bundleDigest, passed: false });
  const { requests, ...fixture } = json.fixtures[0];
  expect(fixture).toEqual({
    name: 'Slow is denied & fast is <not>',
    file: 'cases/a.yaml',
    line: 1,
    column: 1,
    status: 'failed',
    writes: [],
    warnings: [
      { file: 'cases/a.yaml', line: 4, column: 60, message: '"x" is not the name of a model in the catalogue.' },
    ],
  });
  expect(requests).toHaveLength(4);
  expect(requests[0]).toEqual({
    action: 'chat',
    key: 'ci',
    model: 'slow',
    provider: 'any',
    address: '::1',
    file: 'cases/a.yaml',
    line: 7,
    column: 5,
    passed: false,
    outcome: 'deny',
    permitted: [],
    reason: { scope: 'key', ruleType: 'deny_models', ruleIds: ['no-slow'], message: MESSAGE },
    violations: { 'acme/slow': ['no-slow'] },
    shadow: { permitted: [], would_deny: [], would_allow: [] },
    differences: [{ expected: 'permit acme/slow', came: `deny key deny_models (${MESSAGE})` }],
  });
  expect(json.fixtures[1]).toMatchObject({ status: 'skipped', skip: 'waits for a decision', requests: [], writes: [] });
  expect(json.coverage.rules).toEqual({
    covered: 1,
    total: 2,
    percent: 50,
    uncovered: [
      { id: 'never', scope: 'key', owner: 'ci', ruleType: 'deny_models', file: 'cases/a.yaml', line: 4, column: 60 },
    ],
  });
  expect(json.coverage.kinds.uncovered[0]).toEqual({ scope: 'organization', ruleType: 'allow_models' });
});

it('as JUnit XML, with times and what is not covered', () => {
  const { report: each, cwd } = report();
  const name = 'Slow is denied &amp; fast is &lt;not&gt;';
  const testcase = (label: string, line: number) =>
    `    <testcase classname="${name}" name="${label}" file="cases/a.yaml" line="${line}" time="T"`;
  const failure = `      <failure message="expected permit acme/slow; came deny key deny_models (${MESSAGE})"/>`;
  const xml = junitReport(each, cwd, { rules: 100, kinds: 0 });
  expect(xml.replaceAll(/time="\d+\.\d{6}"/g, 'time="T"').split('\n')).toEqual([
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites tests="7" failures="3" errors="0" skipped="1" time="T">',
    `  <testsuite name="${name}" tests="4" failures="2" errors="0" skipped="0" time="T">`,
    `${testcase('model=slow address=::1', 7)}>`,
    failure,
    '    </testcase>',
    `${testcase('model=slow address=unknown', 7)}>`,
    failure,
    '    </testcase>',
    `${testcase('model=fast address=::1', 8)}/>`,
    `${testcase('model=fast address=unknown', 8)}/>`,
    '  </testsuite>',
    '  <testsuite name="Later [31m" tests="1" failures="0" errors="0" skipped="1" time="T">',
    '    <testcase classname="Later [31m" name="Later [31m" file="cases/a.yaml" line="10" time="T">',
    '      <skipped message="waits for a decision"/>',
    '    </testcase>',
    '  </testsuite>',
    '  <testsuite name="Coverage" tests="2" failures="1" errors="0" skipped="0" time="T">',
    '    <testcase classname="Coverage" name="rules" time="T">',
    '      <failure message="Fewer than 100 % of the rules are covered.&#10;never (key ci, deny_models)  cases/a.yaml:4:60"/>',
    '    </testcase>',
    '    <testcase classname="Coverage" name="rule types by scope" time="T"/>',
    '  </testsuite>',
    '</testsuites>',
  ]);
  const judged = each.results.flatMap(({ cases }) => cases.map(({ milliseconds }) => milliseconds));
  expect(judged.every((milliseconds) => milliseconds > 0)).toBe(true);
});
