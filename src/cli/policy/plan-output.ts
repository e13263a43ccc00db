import type { InspectColor } from 'node:util';
import type { PolicyPlan, PolicyPlanChange, RuleCreate } from '../../generated/types.ts';
import { counted, plainText } from '../../lib/text.ts';
import { entriesIn, entriesText } from '../rule-output.ts';
import { type Cell, type Format, free, print, printJson, printTable } from '../terminal/output.ts';
import { type DiffFormat, type KindOf, markdownDiff, markdownText, showDiff } from './diff-output.ts';

type Action = PolicyPlanChange['action'];

/** The marks of changes, and the words that count them before and after they are made. */
const ACTIONS: Readonly<
  Record<Action, { readonly mark: string; readonly colour: InspectColor; readonly verb: string; readonly done: string }>
> = {
  add: { mark: '+', colour: 'green', verb: 'add', done: 'added' },
  change: { mark: '~', colour: 'yellow', verb: 'change', done: 'changed' },
  remove: { mark: '-', colour: 'red', verb: 'remove', done: 'removed' },
  adopt: { mark: '=', colour: 'dim', verb: 'adopt', done: 'adopted' },
  rename: { mark: '=', colour: 'dim', verb: 'rename', done: 'renamed' },
};

const TITLES = [
  ...['', free('OWNER'), free('NAME'), 'TYPE'],
  ...[free('VALUE'), 'MODE', 'STATUS', free('DESCRIPTION')],
];

/** The changes of rules, then of access. Warnings are the caller's, but in Markdown. */
export function showPlan(plan: PolicyPlan, { json, ...shown }: DiffFormat, kindOf?: KindOf): void {
  if (json) printJson(plan);
  else if (shown.markdown) print(markdownPlan(plan, shown, kindOf));
  else if (plan.changes.length === 0) print(noChanges(plan));
  else {
    printTable(
      TITLES,
      plan.changes.map((change) => row(change, shown)),
      '',
      shown,
    );
    print(`\n${sums(plan, toDo)}\n`);
    showAccess(plan, shown, kindOf);
  }
}

/** Prints the changes that were made. A person who applies a plan that they have seen gets only the sums. */
export function showApplied(plan: PolicyPlan, { json, ...shown }: DiffFormat, seen: boolean, kindOf?: KindOf): void {
  if (json) printJson(plan);
  else if (plan.changes.length === 0) print(noChanges(plan));
  else {
    if (!seen) {
      printTable(
        TITLES,
        plan.changes.map((change) => row(change, shown)),
        '',
      );
      print('');
      showAccess(plan, shown, kindOf);
      print('');
    }
    print(`Applied: ${sums(plan, ({ done }) => done)}`);
  }
}

const UNKNOWN_ACCESS = 'New access could not be computed in time.';

function showAccess({ access }: PolicyPlan, shown: DiffFormat, kindOf: KindOf | undefined): void {
  if (access === null) print(UNKNOWN_ACCESS);
  else showDiff(access, shown, kindOf);
}

/** A plan as a comment on the change that it is of: the rules in a table, the access below a fold. */
function markdownPlan(plan: PolicyPlan, shown: DiffFormat, kindOf: KindOf | undefined): string {
  if (plan.changes.length === 0) return markdownText(noChanges(plan));
  const titles = TITLES.map((title) => (typeof title === 'string' ? title : title.title));
  const rows = [titles, titles.map(() => '---'), ...plan.changes.map((change) => row(change, shown).map(tableText))];
  return [
    `**Policy plan:** ${markdownText(sums(plan, toDo))}`,
    rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n'),
    plan.access === null ? UNKNOWN_ACCESS : markdownDiff(plan.access, shown, kindOf),
    ...plan.warnings.map((warning) => `> **Warning:** ${markdownText(warning)}`),
  ].join('\n\n');
}

const tableText = ({ text }: Cell): string => markdownText(plainText(text));

const toDo = ({ verb }: { readonly verb: string }): string => `to ${verb}`;

const noChanges = ({ unchanged, source }: PolicyPlan): string =>
  `No changes: ${counted(unchanged, 'rule')} already as the folder states ${unchanged === 1 ? 'it' : 'them'} (source: ${source}).`;

/** `1 rule to add, 2 to change, 5 unchanged (source: policy).` */
function sums({ changes, unchanged, source }: PolicyPlan, wording: (words: { verb: string; done: string }) => string) {
  const parts = Object.entries(ACTIONS).flatMap(([action, words]) => {
    const count = changes.filter((each) => each.action === action).length;
    return count === 0 ? [] : [{ count, words: wording(words) }];
  });
  const texts = parts.map(({ count, words }, at) => `${at === 0 ? counted(count, 'rule') : count} ${words}`);
  return `${texts.join(', ')}, ${unchanged} unchanged (source: ${source}).`;
}

function row({ action, owner, name, before, after }: PolicyPlanChange, format: Format): Cell[] {
  const { mark, colour } = ACTIONS[action];
  const texts = [
    owner.scope === 'organization' ? 'organization' : `${owner.scope} ${owner.name || owner.id}`,
    name ?? '-',
    moved(before, after, ({ ruleType }) => ruleType),
    valueText(before, after, format),
    moved(before, after, ({ mode = 'enforce' }) => mode),
    moved(before, after, ({ status = 'active' }) => status),
    moved(before, after, ({ description }) => description ?? '-'),
  ];
  return [{ text: mark, colour }, ...texts.map((text) => ({ text }))];
}

type Rule = RuleCreate | null;

/** The text of a rule, or the texts before and after its change. */
function moved(before: Rule, after: Rule, of: (rule: RuleCreate) => string): string {
  const texts = [before, after].flatMap((rule) => (rule === null ? [] : of(rule)));
  return [...new Set(texts)].join(' → ');
}

/** A value; of one that changes, what it loses and gains, or what its conditions were and are. */
function valueText(before: Rule, after: Rule, format: Format): string {
  if (before === null || after === null || before.ruleType !== after.ruleType) {
    return moved(before, after, ({ ruleValue }) => entriesText(entriesIn(ruleValue), format));
  }
  const [was, is] = [before.ruleValue, after.ruleValue]
    .map(Object.entries)
    .map((each) => new Map<string, unknown>(each));
  const names = new Set([...(was?.keys() ?? []), ...(is?.keys() ?? [])]);
  return entriesText(
    [...names].flatMap((name) => changedField(name, was?.get(name), is?.get(name))),
    format,
  );
}

function changedField(name: string, was: unknown, is: unknown): string[] {
  if (!Array.isArray(was) || !Array.isArray(is)) {
    const texts = [was, is].map((value) => (value === undefined ? 'none' : String(value)));
    return [`${name} ${[...new Set(texts)].join(' → ')}`];
  }
  const without = (some: readonly unknown[], others: readonly unknown[]): unknown[] =>
    some.filter((entry) => !others.includes(entry));
  const changed = [...without(was, is).map((entry) => `-${entry}`), ...without(is, was).map((entry) => `+${entry}`)];
  return changed.length === 0 ? is.map(String) : changed;
}
