import fc from 'fast-check';
import type { PolicyDecision, PolicyInput } from '../../src/generated/types.ts';
import { bundleDigest } from '../../src/policy/bundle.ts';
import { type DataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createWasmEngine } from '../../src/policy/engine.ts';
import { createPdp, type Pdp } from '../../src/policy/pdp.ts';
import type { LoadedFixture } from '../../src/workbench/fixtures/fixture-file.ts';
import { runFixtures } from '../../src/workbench/fixtures/run-fixtures.ts';
import { policyCase } from '../../test/policy/arbitraries.ts';
import { oracleWithCustom } from '../../test/policy/custom-denials.ts';
import { type OracleRequest, oracleDecision } from '../../test/policy/oracle.ts';
import { dataOf, inputOf } from '../../test/policy/production.ts';
import { canonicalText } from './canonical-decision.ts';
import { wrongAnswer } from './hostile-calls.ts';
import { loadFixtures } from './load-fixtures.ts';

/** What caught a policy, and by which case. */
export interface Catch {
  readonly by: 'start' | 'fixtures' | 'oracle' | 'hostile calls' | 'custom policy';
  readonly at: string;
}

/** The first thing that a compiled policy gets wrong, or null. */
export type Judge = (wasm: Buffer) => Catch | null;

interface Case {
  readonly input: PolicyInput;
  readonly data: DataDocument;
  /** Of `decision` and of `permitted`, as the oracle has them. */
  readonly answers: string;
}

/** Judges by the fixtures, by the oracle on as many random cases (the same for the same seed), then by hostile calls. */
export function createJudge(seed: number, runs: number): Judge {
  const fixtures = loadFixtures();
  const cases = randomCases(seed, runs);
  return (wasm) => {
    const pdp = unlessRefused(() => createPdp({ wasm, digest: bundleDigest({ wasm }) }));
    if (pdp === null) return { by: 'start', at: 'loading' };
    const failed = fixtures.find((fixture) => !passes(pdp, fixture));
    if (failed !== undefined) return { by: 'fixtures', at: failed.name };
    const disagreement = cases.findIndex((each) => answersOf(pdp, each) !== each.answers);
    if (disagreement >= 0) return { by: 'oracle', at: `case ${disagreement}` };
    const wrong = wrongAnswer(createWasmEngine(wasm));
    return wrong === null ? null : { by: 'hostile calls', at: wrong };
  };
}

/** Few are enough: each form of a denial is in many of them. */
const CUSTOM_RUNS = 500;

/** Judges a policy that is compiled together with test/fixtures/policy/denials, by the oracle on random cases. */
export function createCustomJudge(seed: number): Judge {
  const cases = fc
    .sample(policyCase, { seed, numRuns: CUSTOM_RUNS })
    .map((request) => caseOf(request, oracleWithCustom(request)));
  return (wasm) => {
    const pdp = unlessRefused(() => createPdp({ wasm, digest: bundleDigest({ wasm }) }));
    if (pdp === null) return { by: 'custom policy', at: 'loading' };
    const disagreement = cases.findIndex((each) => answersOf(pdp, each) !== each.answers);
    return disagreement < 0 ? null : { by: 'custom policy', at: `case ${disagreement}` };
  };
}

/** Values of a kind that no policy of ours gives can be more than what words them can take: that is noticed too. */
function passes(pdp: Pdp, fixture: LoadedFixture): boolean {
  try {
    return runFixtures(pdp, [fixture]).every(({ status }) => status === 'passed');
  } catch {
    return false;
  }
}

/**
 * Few of the random cases gain access by report rules, which is all that `would_allow` is about: of as many more cases only
 * those are taken.
 */
function randomCases(seed: number, runs: number): Case[] {
  const judged = fc
    .sample(policyCase, { seed, numRuns: 6 * runs })
    .map((request) => ({ request, decision: oracleDecision(request) }));
  return judged
    .filter(({ decision }, index) => index < runs || (decision.shadow?.would_allow.length ?? 0) > 0)
    .map(({ request, decision }) => caseOf(request, decision));
}

/** @param decision null: the policy must fail to evaluate */
const caseOf = (request: OracleRequest, decision: PolicyDecision | null): Case => ({
  input: inputOf(request),
  data: dataOf(request.subjects),
  answers: canonicalText({ decision, permitted: decision?.permitted ?? null }),
});

const answersOf = (pdp: Pdp, { input, data }: Case): string =>
  canonicalText({
    decision: unlessRefused(() => pdp.decide(input, data)),
    permitted: unlessRefused(() => pdp.permitted(input, data)),
  });

/** Null for a failure to evaluate. */
function unlessRefused<T>(evaluate: () => T): T | null {
  try {
    return evaluate();
  } catch (failure) {
    if (failure instanceof PolicyFailure) return null;
    throw failure;
  }
}
