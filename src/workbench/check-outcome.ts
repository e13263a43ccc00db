import type { Expected } from './fixture-expectations.ts';
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

const outcomeFits = (expected: Expected, { outcome }: Outcome): boolean =>
  expected.outcome === 'refused' ? outcome === 'deny' || outcome === 'not_found' : outcome === expected.outcome;

function compare(what: string, expected: readonly string[] | undefined, came: readonly string[]): Difference | null {
  if (expected === undefined || (expected.length === came.length && expected.every((each, i) => each === came[i]))) {
    return null;
  }
  return { expected: `${what} ${listText(expected)}`, came: `${what} ${listText(came)}` };
}

const listText = (texts: readonly string[]): string => (texts.length === 0 ? 'none' : texts.join(', '));

function reasonDifference({ reason }: Expected, outcome: Outcome): Difference | null {
  if (reason === undefined || outcome.reason === undefined) return null;
  const { scope, ruleType, message } = outcome.reason;
  const came = reason.startsWith('Access denied: ') ? message : `${scope} ${ruleType}`;
  return came === reason ? null : { expected: reason, came };
}

const violationDifferences = ({ violations = new Map() }: Expected, outcome: Outcome): (Difference | null)[] =>
  [...violations].map(([candidate, ids]) =>
    compare(`violations of ${candidate}`, ids, outcome.violations.get(candidate) ?? []),
  );

function shadowDifferences({ shadow }: Expected, outcome: Outcome): (Difference | null)[] {
  if (shadow === undefined) return [];
  const came = outcome.shadow;
  return [
    compare('shadow permitted', shadow.permitted, came.permitted),
    compare('shadow wouldDeny', shadow.wouldDeny, came.would_deny),
    compare('shadow wouldAllow', shadow.wouldAllow, came.would_allow),
  ];
}

/** `permit openai/gpt-5`, `deny key deny_models`, `error not_found`. */
export function expectedText({ outcome, permitted, reason }: Expected): string {
  switch (outcome) {
    case 'permit':
      return `permit ${listText(permitted ?? [])}`;
    case 'deny':
      return `deny ${reason ?? 'any'}`;
    case 'refused':
      return 'no permit, since no expectation lists it';
    default:
      return `error ${outcome}`;
  }
}

/** The same of what came, with the reason of a denial as the caller is told it. */
export function outcomeText({ outcome, permitted, reason }: Outcome): string {
  if (outcome === 'permit') return `permit ${listText(permitted)}`;
  if (reason === undefined) return `error ${outcome}`;
  return `deny ${reason.scope} ${reason.ruleType} (${reason.message})`;
}
