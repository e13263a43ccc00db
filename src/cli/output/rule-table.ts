import type { ManagedBy } from '../../generated/types.ts';
import { type Cell, type Column, type Format, free, printTable } from '../terminal/output.ts';

interface MaybeManaged {
  readonly managedBy?: ManagedBy | null;
}

/** The folder that states a rule, and the rule's name there; where a folder does, the rule is to be changed there. */
export const managedText = ({ managedBy }: MaybeManaged): string =>
  managedBy ? `${managedBy.source}: ${managedBy.name}` : '-';

/** Prints rules, with a column for the policy folders that state them if one does. */
export function printRuleTable<Rule extends MaybeManaged>(
  titles: readonly Column[],
  rules: readonly Rule[],
  row: (rule: Rule, index: number) => readonly Cell[],
  empty: string,
  format: Format = {},
): void {
  if (!rules.some(({ managedBy }) => managedBy)) printTable(titles, rules.map(row), empty, format);
  else {
    const rows = rules.map((rule, index) => [...row(rule, index), { text: managedText(rule) }]);
    printTable([...titles, free('MANAGED BY')], rows, empty, format);
  }
}
