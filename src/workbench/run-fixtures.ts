import type { Pdp } from '../policy/pdp.ts';
import { type Difference, differences } from './check-outcome.ts';
import { describeRequest, type FixtureCase } from './fixture-expectations.ts';
import type { LoadedFixture } from './fixture-file.ts';
import { answerDifferences, answerTo, type WriteAnswer, type WriteCase } from './fixture-writes.ts';
import { dataFor, judgeRequest, type Outcome } from './judge-request.ts';
import type { OnProgress } from './judges.ts';

/** What was tried, and where it did not go as expected. */
interface Tried {
  /** Tells it from the fixture's others: `model=swift address=10.0.0.1`, `write=1`. */
  readonly label: string;
  /** Empty: passed. */
  readonly differences: readonly Difference[];
  readonly milliseconds: number;
}

export interface CaseResult extends FixtureCase, Tried {
  readonly outcome: Outcome;
}

export interface WriteResult extends WriteCase, Tried {
  readonly answer: WriteAnswer;
}

export interface FixtureResult {
  readonly fixture: LoadedFixture;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** None of a skipped fixture. */
  readonly cases: readonly CaseResult[];
  readonly writes: readonly WriteResult[];
}

/** Everything that was tried, requests before writes. */
export const triedIn = ({ cases, writes }: FixtureResult): readonly (CaseResult | WriteResult)[] => [
  ...cases,
  ...writes,
];

/** Runs fixtures on the compiled policy, in their order. */
export const runFixtures = (pdp: Pdp, fixtures: readonly LoadedFixture[], onProgress?: OnProgress): FixtureResult[] =>
  fixtures.map((fixture, index) => {
    const result = runFixture(pdp, fixture);
    onProgress?.(index + 1, fixtures.length);
    return result;
  });

function runFixture(pdp: Pdp, fixture: LoadedFixture): FixtureResult {
  if (fixture.skip !== undefined) return { fixture, status: 'skipped', cases: [], writes: [] };
  const { given } = fixture;
  const data = new Map(fixture.axes.key.map((key) => [key, dataFor(given, key)]));
  const cases = fixture.cases.map(({ request, expected }) => {
    const start = performance.now();
    const outcome = judgeRequest(pdp, given, request, data.get(request.labels.key));
    const milliseconds = performance.now() - start;
    const label = describeRequest(request, fixture.axes);
    return { request, expected, outcome, label, differences: differences(expected, outcome), milliseconds };
  });
  const writes = fixture.writes.map((write) => {
    const start = performance.now();
    const answer = answerTo(write, given.catalog);
    const milliseconds = performance.now() - start;
    return { ...write, answer, differences: answerDifferences(write, answer), milliseconds };
  });
  const failed = [...cases, ...writes].some((each) => each.differences.length > 0);
  return { fixture, status: failed ? 'failed' : 'passed', cases, writes };
}
