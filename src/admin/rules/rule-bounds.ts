import { invalidRequest } from '../../domain/errors.ts';
import { type CanonicalRule, entriesOf } from '../../domain/iam-rule.ts';

/** What one subject may have, in all of its rules, active or not (policy/README.md, "Writing a rule"). */
const SUBJECT_BOUNDS = { rules: 200, values: 5000, prefixes: 50 } as const;

/** Throws 400 when these, all rules that a subject would have, are more than one decision can be asked to read. */
export function checkBounds(rules: readonly CanonicalRule[]): void {
  if (rules.length > SUBJECT_BOUNDS.rules) throw tooMany('rules', SUBJECT_BOUNDS.rules, rules.length);
  const values = rules.reduce((sum, rule) => sum + entriesOf(rule).length, 0);
  if (values > SUBJECT_BOUNDS.values) throw tooMany('values', SUBJECT_BOUNDS.values, values);
  const prefixes = rules.reduce((sum, rule) => sum + entriesOf(rule).filter(isPrefix).length, 0);
  if (prefixes > SUBJECT_BOUNDS.prefixes) throw tooMany('entries that end in *', SUBJECT_BOUNDS.prefixes, prefixes);
}

const isPrefix = (entry: string): boolean => entry.endsWith('*');

const tooMany = (what: string, bound: number, count: number) =>
  invalidRequest(
    `The rules of a key, a member, a group or an organization may have at most ${bound} ${what} together; this would make ${count}.`,
    what === 'rules' ? null : '/ruleValue',
  );
