import { invalidField, invalidRequest } from '../../domain/errors.ts';
import { type CanonicalRule, entriesOf, type PolicyRule } from '../../domain/iam-rule.ts';
import { type RuleContent, readRule, storedRule } from '../../domain/rule-content.ts';
import type { IamRule, RulePatch, RuleValue } from '../../generated/types.ts';
import { type ListChange, type ListRun, listChange } from '../../lib/collections.ts';
import { compileSubjectRules } from '../../policy/data-document.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';

/**
 * A rule with a change applied: within its type the named fields of a value replace, null removes one, the others stay
 * (policy/reference.md, "Writing a rule"). @throws ApiError 400 for what is no rule then, and for another type without a value
 */
export function mergedRule(present: RuleRecord, patch: RulePatch): RuleContent {
  const { failOnNewAccess: _, ruleType = present.ruleType, ruleValue, ...others } = patch;
  const isSameType = ruleType === present.ruleType;
  if (!isSameType && ruleValue === undefined) {
    throw invalidField('/ruleValue', 'is missing: another rule type needs a whole value');
  }
  const { status, mode, description } = present;
  return readRule({
    status,
    mode,
    description,
    ...others,
    ruleType,
    ruleValue: isSameType
      ? mergedValue(readRule({ ruleType, ruleValue: present.ruleValue }).ruleValue, ruleValue)
      : ruleValue,
  });
}

const mergedValue = (present: object, change: object = {}): object =>
  Object.fromEntries(Object.entries({ ...present, ...change }).filter(([, value]) => value !== null));

/** Bounds of one subject's rules, active or not (policy/reference.md, "Writing a rule"). */
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

/** A long list as the audit log shows it: its length, and what it lost or gained. */
interface ShownList {
  readonly count: number;
  readonly removed?: readonly ListRun[];
  readonly added?: readonly ListRun[];
}

/** A rule as the audit log shows it. */
type ShownRule = Omit<IamRule, 'ruleValue'> & {
  readonly ruleValue: RuleValue | Readonly<Record<string, ShownList>>;
};

/** Characters of JSON up to which both values are shown whole. */
const MAX_WHOLE = 1000;

/**
 * A changed rule for the audit log, which grows by what was changed: of a long value it holds that alone
 * (schemas/admin/audit.json).
 */
export function ruleChange(before: IamRule, after: IamRule): { before: ShownRule; after: ShownRule } {
  if (isShort(before) && isShort(after)) return { before, after };
  const [was, is] = [listOf(before.ruleValue), listOf(after.ruleValue)];
  const isSameKind = was?.name === is?.name;
  const { removed } = listChange(was?.entries ?? [], isSameKind ? (is?.entries ?? []) : []);
  const { added } = listChange(isSameKind ? (was?.entries ?? []) : [], is?.entries ?? []);
  return {
    before: { ...before, ruleValue: was === undefined ? before.ruleValue : shownList(was, { removed }) },
    after: { ...after, ruleValue: is === undefined ? after.ruleValue : shownList(is, { added }) },
  };
}

const isShort = ({ ruleValue }: IamRule): boolean => JSON.stringify(ruleValue).length <= MAX_WHOLE;

interface NamedList {
  readonly name: string;
  readonly entries: readonly string[];
}

/** The list of a rule's value; a price has none. */
function listOf(value: RuleValue): NamedList | undefined {
  const [member] = Object.entries(value);
  if (member === undefined || !Array.isArray(member[1])) return undefined;
  return { name: member[0], entries: member[1] };
}

/** Without the change where there is none, so that equal lists look alike. */
const shownList = ({ name, entries }: NamedList, change: Partial<ListChange>): Readonly<Record<string, ShownList>> => ({
  [name]: { count: entries.length, ...(Object.values(change).every(({ length }) => length === 0) ? {} : change) },
});

const policyRule = (record: RuleRecord): PolicyRule => ({
  ...storedRule(record),
  id: record.id,
  mode: record.mode,
});

/** The compiled text of a subject: its active rules, as the policy's data document holds them. */
export const compileRules = (rules: readonly RuleRecord[]): string =>
  compileSubjectRules(rules.filter(({ status }) => status === 'active').map(policyRule));
