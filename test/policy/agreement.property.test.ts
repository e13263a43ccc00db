import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RULE_TYPES } from '../../src/domain/iam-rule.ts';
import type { PolicyDecision } from '../../src/generated/types.ts';
import { validatePolicyInput } from '../../src/generated/validators.js';
import { policyCase } from './arbitraries.ts';
import { type OracleRequest, oracleDecision } from './oracle.ts';
import { decide, inputOf } from './production.ts';
import { propertyRuns, propertyTimeout } from './property-runs.ts';

const RUNS = 20_000;

describe('the compiled policy and the oracle', () => {
  it(
    'decide alike: the same candidates, the same violations, the same shadow',
    () => {
      const seen = new Map<string, number>();
      const parameters = propertyRuns<[OracleRequest]>(RUNS);
      fc.assert(
        fc.property(policyCase, (request) => {
          const decision = oracleDecision(request);
          deepStrictEqual(decide(request), decision);
          for (const outcome of outcomesOf(request, decision)) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
        }),
        parameters,
      );
      const floor = Math.floor((parameters.numRuns ?? RUNS) / 1000);
      expect(OUTCOMES.filter((outcome) => (seen.get(outcome) ?? 0) < floor)).toEqual([]);
    },
    propertyTimeout(RUNS),
  );

  it(
    'are asked about inputs that the schema allows',
    () => {
      fc.assert(
        fc.property(policyCase, (request) => validatePolicyInput(inputOf(request))),
        propertyRuns(1_000),
      );
    },
    propertyTimeout(1_000),
  );
});

/** What the cases must bring about, each in at least one of 1,000: agreement about nothing would prove nothing. */
const OUTCOMES = [
  ...[
    'none permitted',
    'some permitted',
    'all permitted',
    'would_deny',
    'would_allow',
    'unknown address',
    'two groups',
  ],
  ...RULE_TYPES,
];

function outcomesOf({ candidates }: OracleRequest, { permitted, violations, shadow }: PolicyDecision): Set<string> {
  const share = permitted.length === 0 ? 'none' : permitted.length < candidates.length ? 'some' : 'all';
  const outcomes = new Set([`${share} permitted`, ...violations.map(({ effect, kind }) => `${effect}_${kind}`)]);
  if (violations.some(({ kind, values }) => kind === 'ip_cidrs' && values.includes('unknown')))
    outcomes.add('unknown address');
  if (new Set(violations.flatMap(({ group = [] }) => group)).size === 2) outcomes.add('two groups');
  if (shadow !== undefined && shadow.would_deny.length > 0) outcomes.add('would_deny');
  if (shadow !== undefined && shadow.would_allow.length > 0) outcomes.add('would_allow');
  return outcomes;
}
