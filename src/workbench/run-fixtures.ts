import type { Pdp } from '../policy/pdp.ts';
import { type Difference, differences } from './check-outcome.ts';
import { describeRequest, type FixtureCase } from './fixture-expectations.ts';
import type { LoadedFixture } from './fixture-file.ts';
import { dataFor, judgeRequest, type Outcome } from './judge-request.ts';

export interface CaseResult extends FixtureCase {
  /** Tells the request from the fixture's others: `model=swift address=10.0.0.1`. */
  readonly label: string;
  readonly outcome: Outcome;
  /** Empty: passed. */
  readonly differences: readonly Difference[];
}

export interface FixtureResult {
  readonly fixture: LoadedFixture;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** None of a skipped fixture. */
  readonly cases: readonly CaseResult[];
}

/** Runs fixtures on the compiled policy, in their order. */
export const runFixtures = (pdp: Pdp, fixtures: readonly LoadedFixture[]): FixtureResult[] =>
  fixtures.map((fixture) => runFixture(pdp, fixture));

function runFixture(pdp: Pdp, fixture: LoadedFixture): FixtureResult {
  if (fixture.skip !== undefined) return { fixture, status: 'skipped', cases: [] };
  const { given } = fixture;
  const data = new Map(fixture.axes.key.map((key) => [key, dataFor(given, key)]));
  const cases = fixture.cases.map(({ request, expected }) => {
    const outcome = judgeRequest(pdp, given, request, data.get(request.labels.key));
    const label = describeRequest(request, fixture.axes);
    return { request, expected, outcome, label, differences: differences(expected, outcome) };
  });
  const failed = cases.some((each) => each.differences.length > 0);
  return { fixture, status: failed ? 'failed' : 'passed', cases };
}
