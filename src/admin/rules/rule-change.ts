import type { IamRule, RuleValue } from '../../generated/types.ts';
import { type ListChange, type ListRun, listChange } from '../../lib/collections.ts';

/** A long list as the audit log shows it: its length, and what it lost or gained. */
interface ToldList {
  readonly count: number;
  readonly removed?: readonly ListRun[];
  readonly added?: readonly ListRun[];
}

/** A rule as the audit log shows it. */
type ToldRule = Omit<IamRule, 'ruleValue'> & {
  readonly ruleValue: RuleValue | Readonly<Record<string, ToldList>>;
};

/** Characters of JSON up to which both values are shown whole. */
const MAX_WHOLE = 1000;

/**
 * A changed rule for the audit log, which grows by what was changed: of a long value it holds that alone
 * (schemas/admin/audit.json).
 */
export function ruleChange(before: IamRule, after: IamRule): { before: ToldRule; after: ToldRule } {
  if (isShort(before) && isShort(after)) return { before, after };
  const [was, is] = [listOf(before.ruleValue), listOf(after.ruleValue)];
  const isSameKind = was?.name === is?.name;
  const { removed } = listChange(was?.entries ?? [], isSameKind ? (is?.entries ?? []) : []);
  const { added } = listChange(isSameKind ? (was?.entries ?? []) : [], is?.entries ?? []);
  return {
    before: { ...before, ruleValue: was === undefined ? before.ruleValue : told(was, { removed }) },
    after: { ...after, ruleValue: is === undefined ? after.ruleValue : told(is, { added }) },
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
const told = ({ name, entries }: NamedList, change: Partial<ListChange>): Readonly<Record<string, ToldList>> => ({
  [name]: { count: entries.length, ...(Object.values(change).every(({ length }) => length === 0) ? {} : change) },
});
