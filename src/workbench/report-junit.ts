import path from 'node:path';
import { type Coverage, checkCoverage, type Thresholds } from './coverage.ts';
import type { FixtureFault, Place } from './fixture-source.ts';
import { placeText, type Report, ruleText } from './report-text.ts';
import { type FixtureResult, triedIn } from './run-fixtures.ts';

/** A JUnit test suite: its name and what was tried in it. */
interface Suite {
  readonly name: string;
  readonly cases: readonly Case[];
}

interface Case {
  readonly name: string;
  /** As seen from the folder of the run. */
  readonly file?: string;
  readonly line?: number;
  readonly milliseconds?: number;
  readonly verdict?: { readonly kind: 'failure' | 'error' | 'skipped'; readonly message: string };
}

/**
 * The report as JUnit XML: a suite for each fixture, a test case for each of its requests and writes, with its time; and one suite
 * for what must be covered, where that was asked.
 */
export function junitReport({ results, coverage }: Report, cwd: string, thresholds: Thresholds): string {
  const suites = results.map((result) => fixtureSuite(result, cwd));
  return xmlOf(coverage === undefined ? suites : [...suites, coverageSuite(coverage, thresholds, cwd)]);
}

/** The same of fixtures that make no sense: nothing was run, and each fault is an error. */
export const junitFaults = (faults: readonly FixtureFault[], cwd: string): string =>
  xmlOf([
    {
      name: 'Fixtures that make no sense',
      cases: faults.map(({ place, message }) => ({
        name: placeText(place, cwd),
        ...placed(place, cwd),
        verdict: { kind: 'error', message },
      })),
    },
  ]);

const placed = ({ file, line }: Place, cwd: string) => ({ file: path.relative(cwd, file), line });

function fixtureSuite(result: FixtureResult, cwd: string): Suite {
  const { name, place, skip } = result.fixture;
  if (skip !== undefined) {
    return { name, cases: [{ name, ...placed(place, cwd), verdict: { kind: 'skipped', message: skip } }] };
  }
  return {
    name,
    cases: triedIn(result).map(({ label, expected, differences, milliseconds }) => {
      const message = differences.map((each) => `expected ${each.expected}; came ${each.came}`).join('\n');
      const tried = { name: label, ...placed(expected.place, cwd), milliseconds };
      return differences.length === 0 ? tried : { ...tried, verdict: { kind: 'failure', message } };
    }),
  };
}

function coverageSuite(coverage: Coverage, thresholds: Thresholds, cwd: string): Suite {
  const uncovered = [
    coverage.rules.uncovered.map((rule) => ruleText(rule, cwd)),
    coverage.kinds.uncovered.map(({ scope, ruleType }) => `${scope} ${ruleType}`),
  ];
  return {
    name: 'Coverage',
    cases: checkCoverage(coverage, thresholds).map(({ what, fault }, index) => {
      if (fault === null) return { name: what };
      return { name: what, verdict: { kind: 'failure', message: [fault, ...(uncovered[index] ?? [])].join('\n') } };
    }),
  };
}

const xmlOf = (suites: readonly Suite[]): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${sums(suites.flatMap(({ cases }) => cases))}>`,
    ...suites.flatMap(({ name, cases }) => [
      `  <testsuite name="${attribute(name)}" ${sums(cases)}>`,
      ...cases.flatMap((each) => testcase(each, name)),
      '  </testsuite>',
    ]),
    '</testsuites>',
  ].join('\n');

function sums(cases: readonly Case[]): string {
  const count = (kind: string): number => cases.filter(({ verdict }) => verdict?.kind === kind).length;
  const time = cases.reduce((sum, { milliseconds = 0 }) => sum + milliseconds, 0);
  return `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${seconds(time)}"`;
}

function testcase({ name, file, line, milliseconds = 0, verdict }: Case, classname: string): string[] {
  const place = file === undefined ? '' : ` file="${attribute(file)}" line="${line}"`;
  const head = `    <testcase classname="${attribute(classname)}" name="${attribute(name)}"${place} time="${seconds(milliseconds)}"`;
  if (verdict === undefined) return [`${head}/>`];
  return [`${head}>`, `      <${verdict.kind} message="${attribute(verdict.message)}"/>`, '    </testcase>'];
}

const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(6);

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
