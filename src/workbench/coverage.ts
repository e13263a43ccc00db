import type { PolicyRule } from '../domain/iam-rule.ts';
import type { RuleType } from '../generated/types.ts';
import type { Pdp } from '../policy/pdp.ts';
import { type GivenRule, RULE_TYPES, type Scope } from './fixture-rules.ts';
import { rulesOf } from './fixture-subjects.ts';
import { dataFor, judgeRequest, type Outcome, subjectsOf } from './judge-request.ts';
import type { OnProgress } from './judges.ts';
import type { FixtureResult } from './run-fixtures.ts';

/** A rule type in a scope: what the policy must know how to judge. */
interface Kind {
  readonly scope: Scope;
  readonly ruleType: RuleType;
}

export interface Share<T> {
  readonly covered: number;
  readonly total: number;
  readonly uncovered: readonly T[];
}

export interface Coverage {
  /** Active rules: of the fixtures, and the others that were asked for. */
  readonly rules: Share<GivenRule>;
  /** Every rule type in every scope. */
  readonly kinds: Share<Kind>;
}

const SCOPES: readonly Scope[] = ['organization', 'member', 'key'];
const KINDS: readonly Kind[] = SCOPES.flatMap((scope) => RULE_TYPES.map((ruleType) => ({ scope, ruleType })));

/**
 * Which rules decide. A rule is covered when some request, judged again without it, has another outcome or other permitted
 * candidates; a rule in mode `report`, when the shadow differs. A kind is covered when an enforced rule of it is.
 * @param others rules that count although no fixture may give them: all those of a database
 */
export function measureCoverage(
  pdp: Pdp,
  results: readonly FixtureResult[],
  others: readonly GivenRule[] = [],
  onProgress?: OnProgress,
): Coverage {
  const rules = new Map<string, GivenRule>();
  const covered = new Set<string>();
  const coveredKinds = new Set<string>();
  for (const given of others) rules.set(identity(given), given);
  for (const [index, result] of results.entries()) {
    onProgress?.(index, results.length);
    for (const given of rulesOf(result.fixture.given)) {
      const id = identity(given);
      rules.set(id, given);
      if (covered.has(id) || !decides(pdp, result, given)) continue;
      covered.add(id);
      if (given.rule.mode === 'enforce') coveredKinds.add(kindId({ ...given, ruleType: given.rule.ruleType }));
    }
  }
  return {
    rules: share([...rules.values()], (given) => covered.has(identity(given))),
    kinds: share(KINDS, (kind) => coveredKinds.has(kindId(kind))),
  };
}

/** The percentage that is covered, 100 where there is nothing to cover. */
export const percentage = ({ covered, total }: Share<unknown>): number => (total === 0 ? 100 : (100 * covered) / total);

/** Least percentages that must be covered. */
export interface Thresholds {
  readonly rules: number;
  readonly kinds: number;
}

/** What is measured, in words, and why it is too little; null: it is enough. */
export interface CoverageCheck {
  readonly what: string;
  readonly fault: string | null;
}

/** Whether enough is covered, rules before kinds. */
export const checkCoverage = ({ rules, kinds }: Coverage, thresholds: Thresholds): CoverageCheck[] =>
  [
    { what: 'rules', share: rules, least: thresholds.rules },
    { what: 'rule types by scope', share: kinds, least: thresholds.kinds },
  ].map(({ what, share, least }) => ({
    what,
    fault: percentage(share) < least ? `Fewer than ${least} % of the ${what} are covered.` : null,
  }));

/** A rule of an included file is one rule, however many fixtures include it. */
const identity = ({ place, storedId, rule }: GivenRule): string =>
  place === undefined ? (storedId ?? rule.id) : `${place.file}:${place.line}:${place.column}`;

const kindId = ({ scope, ruleType }: Kind): string => `${scope} ${ruleType}`;

function share<T>(all: readonly T[], isCovered: (each: T) => boolean): Share<T> {
  const uncovered = all.filter((each) => !isCovered(each));
  return { covered: all.length - uncovered.length, total: all.length, uncovered };
}

/** Judges again, without the rule, what it binds, until something differs. */
function decides(pdp: Pdp, { fixture, cases }: FixtureResult, { rule }: GivenRule): boolean {
  const { given, axes } = fixture;
  const bound = axes.key.filter((key) =>
    subjectsOf(given, key).some(({ rules }) => rules.some((r) => r.rule === rule)),
  );
  return bound.some((key) => {
    const data = dataFor(given, key, rule);
    return cases.some(
      ({ request, outcome }) =>
        request.labels.key === key && differ(rule, outcome, judgeRequest(pdp, given, request, data)),
    );
  });
}

function differ({ mode }: PolicyRule, a: Outcome, b: Outcome): boolean {
  if (mode === 'report') return JSON.stringify(a.shadow) !== JSON.stringify(b.shadow);
  return a.outcome !== b.outcome || a.permitted.join('\n') !== b.permitted.join('\n');
}
