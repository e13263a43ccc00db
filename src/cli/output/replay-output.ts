import { withName } from '../../domain/id.ts';
import type { ReplayChange, ReplayGroup, ReplayReport, ReplayUnjudged } from '../../generated/types.ts';
import { counted } from '../../lib/counted.ts';
import { type Cell, free, print, printJson, printTable, warn } from '../terminal/output.ts';
import { scopeText } from './access-output.ts';

/** Rows that are printed; `--json` has more. */
const MOST_ROWS = 50;

const CHANGES: Readonly<Record<ReplayChange, { readonly text: string; readonly colour: 'green' | 'red' | 'yellow' }>> =
  {
    denied: { text: 'newly denied', colour: 'red' },
    permitted: { text: 'newly permitted', colour: 'green' },
    widened: { text: 'more candidates', colour: 'green' },
    narrowed: { text: 'fewer candidates', colour: 'yellow' },
  };

const UNJUDGED: Readonly<Record<ReplayUnjudged['reason'], string>> = {
  not_on_record: 'they, or the rules that they saw, are not on record any more',
  damaged: 'the rules that they saw are not what their digest says',
  subject_gone: 'their key or member is no longer there',
  failed: 'the policy could not be evaluated',
};

const RULES: Readonly<Record<ReplayReport['by'], string>> = {
  recorded: 'under the rules that each of them saw',
  current: 'under the current rules',
  draft: 'under the current rules with the draft',
  folder: 'under the current rules with the folder applied',
};

/** What would change, and how much would not. */
export function showReplay(report: ReplayReport, { json }: { readonly json?: true }): void {
  if (json) {
    printJson(report);
    return;
  }
  showGroups(report);
  const { from, to, decisions, by, policyRevision } = report;
  print(`${counted(decisions, 'decision')} from ${from} to ${to}, ${RULES[by]} (policy ${policyRevision}):`);
  for (const line of sums(report)) print(line);
  showDifferences(report);
  for (const warning of report.warnings) warn(`warning: ${warning}`);
}

function sums({ changed, unchanged, unjudged, otherPolicies, withoutFacts, recorded }: ReplayReport): string[] {
  const { denied, permitted, widened, narrowed } = changed;
  return [
    `  ${denied} newly denied, ${permitted} newly permitted, ${widened} with more candidates, ${narrowed} with fewer, ${unchanged} unchanged`,
    ...(recorded === null
      ? []
      : [`  ${recorded.identical} byte for byte as recorded, ${recorded.different} different, by the same policy`]),
    ...otherPolicies.map(
      ({ digest, decisions }) => `  ${decisions} of them had been decided by another policy, ${digest.slice(0, 12)}`,
    ),
    ...(withoutFacts === 0
      ? []
      : [
          `  ${withoutFacts} without facts of the request on record: what the package custom says of facts was not tried on them`,
        ]),
    ...unjudged.map(
      ({ reason, decisions, examples }) => `  ${decisions} not judged: ${UNJUDGED[reason]} (${examples.join(', ')})`,
    ),
  ];
}

function showGroups({ groups, moreGroups, groupBy, rules }: ReplayReport): void {
  if (groups.length === 0) return;
  const ruleTexts = new Map(
    rules.map((rule) => [rule.id, `${scopeText(rule)} ${rule.ruleType} ${withName(rule.id, rule.description)}`]),
  );
  const columns = [
    { title: 'KEY', shown: 'key', of: ({ key }: ReplayGroup) => key?.name ?? key?.id },
    { title: 'MEMBER', shown: 'member', of: ({ member }: ReplayGroup) => member?.name ?? member?.id },
    { title: 'MODEL', shown: 'model', of: ({ model }: ReplayGroup) => model },
    {
      title: 'RULES',
      shown: 'rule',
      of: ({ ruleIds }: ReplayGroup) => ruleIds?.map((id) => ruleTexts.get(id) ?? id).join(', '),
    },
  ] as const;
  const shown = columns.filter((column) => groupBy.includes(column.shown));
  printTable(
    ['CALLS', 'CHANGE', ...shown.map(({ title }) => free(title)), 'FIRST DECISION'],
    groups
      .slice(0, MOST_ROWS)
      .map((group): Cell[] => [
        { text: String(group.decisions) },
        CHANGES[group.change],
        ...shown.map(({ of }) => ({ text: of(group) ?? '-' })),
        { text: group.examples[0] ?? '-' },
      ]),
    '',
  );
  const hidden = Math.max(0, groups.length - MOST_ROWS) + moreGroups;
  if (hidden > 0) print(`${counted(hidden, 'more group')} of fewer calls; --group-by makes fewer.`);
  print('');
}

/** Both results of each decision that differs. */
function showDifferences({ recorded }: ReplayReport): void {
  for (const { decisionId, decisions, recorded: then, replayed } of recorded?.differences ?? []) {
    print(`\n${decisionId}${decisions > 1 ? `, and ${decisions - 1} alike` : ''}`);
    print(`  recorded  ${JSON.stringify(then)}`);
    print(`  replayed  ${JSON.stringify(replayed)}`);
  }
}
