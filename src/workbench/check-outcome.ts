import type { Expected } from './fixture-expectations.ts';
import type { ExpectedSet } from './fixture-sets.ts';
import type { Outcome } from './judge-request.ts';

/** One thing that is not as expected, in words. */
export interface Difference {
  readonly expected: string;
  readonly came: string;
}

/** Where an outcome is not what was expected; empty: nowhere. */
export function differences(expected: Expected, outcome: Outcome): Difference[] {
  if (!outcomeFits(expected, outcome)) return [{ expected: expectedText(expected), came: outcomeText(outcome) }];
  return [
    compare('permitted', expected.permitted, outcome.permitted),
    reasonDifference(expected, outcome),
    compare('rules', expected.rules, outcome.reason?.ruleIds ?? []),
    ...violationDifferences(expected, outcome),
    ...shadowDifferences(expected, outcome),
  ].filter((difference) => difference !== null);
}

/** A list that is empty permits nothing either. */
const outcomeFits = (expected: Expected, { outcome, permitted }: Outcome): boolean =>
  expected.outcome === 'refused' ? outcome !== 'unavailable' && permitted.length === 0 : outcome === expected.outcome;

function compare(what: string, expected: ExpectedSet | undefined, came: readonly string[]): Difference | null {
  if (expected === undefined) return null;
  if ('exactly' in expected) {
    const { exactly } = expected;
    const isSame = exactly.length === came.length && exactly.every((each, index) => each === came[index]);
    return isSame ? null : { expected: `${what} ${listText(exactly)}`, came: `${what} ${listText(came)}` };
  }
  const missing = expected.includes.filter((each) => !came.includes(each));
  const unwanted = expected.excludes.filter((each) => came.includes(each));
  if (missing.length + unwanted.length === 0) return null;
  return {
    expected: `${what} ${setText({ includes: missing, excludes: unwanted })}`,
    came: `${what} ${listText(came)}`,
  };
}

/** Texts that one line lists. */
const MOST_LISTED = 50;

function listText(texts: readonly string[]): string {
  if (texts.length === 0) return 'none';
  const more = texts.length > MOST_LISTED ? ` and ${texts.length - MOST_LISTED} more` : '';
  return `${texts.slice(0, MOST_LISTED).join(', ')}${more}`;
}

/** `a, b`, or `with a, without b`. */
function setText(set: ExpectedSet): string {
  if ('exactly' in set) return listText(set.exactly);
  const { includes, excludes } = set;
  return [
    ...(includes.length === 0 ? [] : [`with ${listText(includes)}`]),
    ...(excludes.length === 0 ? [] : [`without ${listText(excludes)}`]),
  ].join(', ');
}

function reasonDifference({ reason }: Expected, outcome: Outcome): Difference | null {
  if (reason === undefined || outcome.reason === undefined) return null;
  const { scope, ruleType, message } = outcome.reason;
  const came = reason.startsWith('Access denied: ') ? message : `${scope} ${ruleType}`;
  return came === reason ? null : { expected: reason, came };
}

const violationDifferences = ({ violations = new Map() }: Expected, outcome: Outcome): (Difference | null)[] =>
  [...violations].map(([candidate, ids]) =>
    compare(`violations of ${candidate}`, { exactly: ids }, outcome.violations.get(candidate) ?? []),
  );

function shadowDifferences({ shadow }: Expected, outcome: Outcome): (Difference | null)[] {
  if (shadow === undefined) return [];
  const came = outcome.shadow;
  return [
    compare('shadow permitted', shadow.permitted, came.permitted),
    compare('shadow wouldDeny', { exactly: shadow.wouldDeny }, came.would_deny),
    compare('shadow wouldAllow', { exactly: shadow.wouldAllow }, came.would_allow),
  ];
}

/** `permit openai/gpt-5`, `deny key deny_models`, `error not_found`. */
function expectedText({ outcome, permitted, reason }: Expected): string {
  switch (outcome) {
    case 'permit':
      return permitted === undefined ? 'permit' : `permit ${setText(permitted)}`;
    case 'deny':
      return `deny ${reason ?? 'any'}`;
    case 'refused':
      return 'no permit, since no expectation lists it';
    default:
      return `error ${outcome}`;
  }
}

/** The same of what came, with the reason of a denial as the caller is told it. */
function outcomeText({ outcome, permitted, reason }: Outcome): string {
  if (outcome === 'permit') return `permit ${listText(permitted)}`;
  if (reason === undefined) return `error ${outcome}`;
  return `deny ${reason.scope} ${reason.ruleType} (${reason.message})`;
}
