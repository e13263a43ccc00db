import path from 'node:path';
import type { Report } from './report-text.ts';
import type { CaseResult, FixtureResult } from './run-fixtures.ts';

/** The report as JUnit XML: a suite for each fixture, a test case for each of its requests. */
export function junitReport({ results }: Report, cwd: string): string {
  const cases = results.flatMap((result) => result.cases);
  const failed = cases.filter(({ differences }) => differences.length > 0).length;
  const skipped = results.filter(({ status }) => status === 'skipped').length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="${cases.length + skipped}" failures="${failed}" skipped="${skipped}">`,
    ...results.flatMap((result) => suite(result, cwd)),
    '</testsuites>',
  ].join('\n');
}

function suite({ fixture, cases }: FixtureResult, cwd: string): string[] {
  const failed = cases.filter(({ differences }) => differences.length > 0).length;
  const name = attribute(fixture.name);
  const file = attribute(path.relative(cwd, fixture.place.file));
  if (fixture.skip !== undefined) {
    return [
      `  <testsuite name="${name}" tests="1" failures="0" skipped="1">`,
      `    <testcase classname="${name}" name="${name}" file="${file}" line="${fixture.place.line}">`,
      `      <skipped message="${attribute(fixture.skip)}"/>`,
      '    </testcase>',
      '  </testsuite>',
    ];
  }
  return [
    `  <testsuite name="${name}" tests="${cases.length}" failures="${failed}" skipped="0">`,
    ...cases.flatMap((each) => testcase(each, name, cwd)),
    '  </testsuite>',
  ];
}

function testcase({ label, expected, differences }: CaseResult, classname: string, cwd: string): string[] {
  const file = attribute(path.relative(cwd, expected.place.file));
  const head = `    <testcase classname="${classname}" name="${attribute(label)}" file="${file}" line="${expected.place.line}"`;
  if (differences.length === 0) return [`${head}/>`];
  const text = differences.map((each) => `expected ${each.expected}; came ${each.came}`).join('\n');
  return [`${head}>`, `      <failure message="${attribute(text)}"/>`, '    </testcase>'];
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\n': '&#10;',
};

/** Text for an attribute in double quotes; characters that XML cannot hold become blanks. */
const attribute = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\P{Cc}\n]|[\uFFFE\uFFFF]/gu, ' ')
    .replace(/[&<>"\n]/g, (character) => ENTITIES[character] ?? character);
