import path from 'node:path';
import { percentage, type Share } from './coverage.ts';
import type { GivenRule } from './fixture-rules.ts';
import type { Place } from './fixture-source.ts';
import type { Outcome } from './judge-request.ts';
import type { Report } from './report-text.ts';
import type { CaseResult, WriteResult } from './run-fixtures.ts';

/** The report as a JSON value; files are named from `cwd`. */
export function jsonReport({ bundleDigest, results, coverage }: Report, cwd: string): object {
  return {
    bundleDigest,
    passed: results.every(({ status }) => status !== 'failed'),
    fixtures: results.map(({ fixture, status, cases, writes }) => ({
      name: fixture.name,
      ...jsonPlace(fixture.place, cwd),
      status,
      ...(fixture.skip === undefined ? {} : { skip: fixture.skip }),
      warnings: fixture.warnings.map(({ place, message }) => ({ ...jsonPlace(place, cwd), message })),
      requests: cases.map((each) => jsonCase(each, cwd)),
      writes: writes.map((each) => jsonWrite(each, cwd)),
    })),
    ...(coverage === undefined
      ? {}
      : {
          coverage: {
            rules: jsonShare(coverage.rules, (rule) => jsonRule(rule, cwd)),
            kinds: jsonShare(coverage.kinds, ({ scope, ruleType }) => ({ scope, ruleType })),
          },
        }),
  };
}

const jsonPlace = ({ file, line, column }: Place, cwd: string) => ({ file: path.relative(cwd, file), line, column });

const jsonCase = ({ request, expected, outcome, differences }: CaseResult, cwd: string) => ({
  ...request.labels,
  ...jsonPlace(expected.place, cwd),
  passed: differences.length === 0,
  ...jsonOutcome(outcome),
  differences,
});

const jsonWrite = ({ label, expected, answer, differences }: WriteResult, cwd: string) => ({
  name: label,
  ...jsonPlace(expected.place, cwd),
  passed: differences.length === 0,
  ...answer,
  differences,
});

const jsonOutcome = (outcome: Outcome) => ({
  outcome: outcome.outcome,
  permitted: outcome.permitted,
  ...(outcome.reason === undefined ? {} : { reason: outcome.reason }),
  violations: Object.fromEntries(outcome.violations),
  shadow: outcome.shadow,
});

const jsonShare = <T>(share: Share<T>, show: (each: T) => object) => ({
  covered: share.covered,
  total: share.total,
  percent: percentage(share),
  uncovered: share.uncovered.map(show),
});

const jsonRule = ({ scope, owner, rule, storedId, place }: GivenRule, cwd: string) => ({
  id: rule.id,
  ...(storedId === undefined ? {} : { storedId }),
  scope,
  ...(owner === undefined ? {} : { owner }),
  ruleType: rule.ruleType,
  ...(place === undefined ? {} : jsonPlace(place, cwd)),
});
