import { deepStrictEqual, throws } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RULE_TYPES } from '../../src/domain/iam-rule.ts';
import type { PolicyDecision } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { archivedBundle, readArchive } from '../../src/policy/archive/read-archive.ts';
import { PolicyFailure } from '../../src/policy/data-document.ts';
import { denialReason } from '../../src/policy/denial.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { policyCase } from './arbitraries.ts';
import { oracleWithCustom } from './custom-denials.ts';
import { type OracleRequest, oracleDecision } from './oracle.ts';
import { decide, inputOf } from './production.ts';
import { propertyRuns, propertyTimeout } from './property-runs.ts';

const validatePolicyInput = validator('PolicyInput');

const RUNS = 20_000;
const CUSTOM_RUNS = 2_000;

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

describe('a bundle with custom policy and the oracle', () => {
  const archive = readFileSync(new URL('../fixtures/policy/denials.tar.gz', import.meta.url));
  const pdp = createPdp(archivedBundle(readArchive(archive)));

  it(
    'decide alike, and put down to custom policy only what the rules permit',
    () => {
      const seen = new Map<string, number>();
      const parameters = propertyRuns<[OracleRequest]>(CUSTOM_RUNS);
      fc.assert(
        fc.property(policyCase, (request) => {
          const decision = oracleWithCustom(request);
          for (const outcome of customOutcomesOf(request, decision)) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
          if (decision === null) return throws(() => decide(request, pdp), PolicyFailure);
          deepStrictEqual(decide(request, pdp), decision);
          if (decision.permitted.length > 0) return;
          const byRules = oracleDecision(request).permitted.length === 0;
          deepStrictEqual(denialReason(inputOf(request), decision).scope === 'custom', !byRules);
        }),
        parameters,
      );
      const floor = Math.floor((parameters.numRuns ?? CUSTOM_RUNS) / 200);
      expect(CUSTOM_OUTCOMES.filter((outcome) => (seen.get(outcome) ?? 0) < floor)).toEqual([]);
    },
    propertyTimeout(CUSTOM_RUNS),
  );
});

/** Each in at least one of 200. */
const CUSTOM_OUTCOMES = [
  ...['fails', 'denied by custom policy', 'denied by rules', 'denied by both', 'narrowed by custom policy', 'shadow'],
  ...['images', 'azure', 'without id'],
];

function customOutcomesOf(request: OracleRequest, decision: PolicyDecision | null): Set<string> {
  if (decision === null) return new Set(['fails']);
  const custom = decision.violations.filter(({ scope }) => scope === 'custom');
  const outcomes = new Set(custom.flatMap(({ ruleIds }) => ruleIds));
  const byRules = oracleDecision(request).permitted;
  if (custom.length > 0 && decision.shadow !== undefined) outcomes.add('shadow');
  if (decision.permitted.length > 0 && decision.permitted.length < byRules.length) {
    outcomes.add('narrowed by custom policy');
  }
  if (decision.permitted.length > 0) return outcomes;
  const deniedAlready = custom.length > 0 ? 'denied by both' : 'denied by rules';
  return outcomes.add(byRules.length > 0 ? 'denied by custom policy' : deniedAlready);
}

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
