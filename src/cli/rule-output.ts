import { type ChangePlan, changeJudged, changeRehearsed, type JudgedChange } from '../admin/rules/judged-change.ts';
import type {
  IamRule,
  RuleChangeAnswer,
  RuleCreateAnswer,
  RuleDeletion,
  RuleEvidence,
  RuleValue,
  RuleWidening,
} from '../generated/types.ts';
import { counted, plainText } from '../lib/text.ts';
import type { Dispensable } from '../store/backup/check-data-dir.ts';
import type { Regrouping, RuleReplacement } from '../workbench/analysis/drafts.ts';
import { showDecisionsWithShadow } from './log-output.ts';
import { addressText, callableCell, nameOf, printRuleTable } from './policy/access-output.ts';
import {
  type Cell,
  extra,
  type Format,
  free,
  print,
  printJson,
  printTable,
  timeText,
  warn,
} from './terminal/output.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

const RULE_TITLES = [
  ...['ID', free('OWNER'), 'TYPE', free('VALUE'), 'MODE', 'STATUS', free('DESCRIPTION')],
  ...extra('OWNER ID'),
];
const LONGEST_VALUE = 60;

/** A list as it is, conditions each with its name. */
export const entriesIn = (value: RuleValue): readonly string[] =>
  Object.entries(value).flatMap(([name, each]) => (Array.isArray(each) ? each.map(String) : `${name} ${each}`));

/** The entries of a value, or of what changes in one, in a cell of a table. */
export function entriesText(entries: readonly string[], { wide }: Format = {}): string {
  const text = entries.join(', ');
  return text.length > LONGEST_VALUE && !wide ? `${text.slice(0, LONGEST_VALUE)}… (${entries.length})` : text;
}

const ownerText = ({ ownerName, apiKeyId, memberId, groupId }: IamRule): string =>
  ownerName || ((apiKeyId ?? memberId ?? groupId) ? 'unnamed' : 'organization');

const ruleRow = (rule: IamRule, format: Format = {}): Cell[] => [
  { text: rule.id },
  { text: ownerText(rule) },
  { text: rule.ruleType, colour: rule.ruleType.startsWith('deny') ? 'red' : 'green' },
  { text: entriesText(entriesIn(rule.ruleValue), format) },
  rule.mode === 'report' ? { text: rule.mode, colour: 'yellow' } : { text: rule.mode },
  rule.status === 'inactive' ? { text: rule.status, colour: 'yellow' } : { text: rule.status },
  { text: rule.description ?? '-' },
  { text: rule.apiKeyId ?? rule.memberId ?? rule.groupId ?? '-' },
];

const NO_RULES = 'There are no rules.';

/** Columns for the effect that a rule in mode `report` would have had. */
const REPORT_TITLES = extra('WOULD DENY', 'WOULD ALLOW', 'LAST SEEN');

const reportCells = ({ reportOnly }: IamRule): Cell[] => [
  { text: reportOnly ? String(reportOnly.wouldDeny) : '-' },
  { text: reportOnly ? String(reportOnly.wouldAllow) : '-' },
  { text: timeText(reportOnly?.lastSeenAt ?? '-') },
];

export function showRules(rules: readonly IamRule[], format: Format): void {
  if (format.json) {
    printJson({ rules, nextCursor: null });
    return;
  }
  const reporting = rules.some(({ reportOnly }) => reportOnly);
  const titles = reporting ? [...RULE_TITLES, ...REPORT_TITLES] : RULE_TITLES;
  const cells = (rule: IamRule): Cell[] => [...ruleRow(rule, format), ...(reporting ? reportCells(rule) : [])];
  printRuleTable(titles, rules, cells, NO_RULES, format);
}

/** The rule, since when it reports, and what it would have changed. @param names of keys, by their ids */
export function showEvidence(evidence: RuleEvidence, names: ReadonlyMap<string, string>, { json }: Format): void {
  if (json) {
    printJson(evidence);
    return;
  }
  const { rule, otherReportRules, decisions, nextCursor } = evidence;
  printTable(RULE_TITLES, [ruleRow(rule)], '');
  print('');
  if (!rule.reportOnly) {
    print(`Not reporting: the rule is ${rule.status === 'inactive' ? 'inactive' : 'enforced'}.`);
    return;
  }
  const { since, wouldDeny, wouldAllow, lastSeenAt } = rule.reportOnly;
  const last = lastSeenAt === null ? '' : `; most recently at ${lastSeenAt}`;
  print(
    `Reporting since ${since}. ${counted(wouldDeny, 'call')} would have lost at least one provider, ${wouldAllow} would have gained one${last}.`,
  );
  if (otherReportRules > 0 && rule.ruleType.startsWith('allow_')) {
    print(
      `${counted(otherReportRules, 'other rule')} in mode report ${otherReportRules === 1 ? 'is' : 'are'} judged together with this one; on its own it may change more or fewer calls.`,
    );
  }
  print('');
  showDecisionsWithShadow({ decisions, nextCursor }, names);
}

/** A new rule, what it newly permits, and what may not be as it was meant. */
export function showRule(answer: RuleCreateAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  printRuleTable(RULE_TITLES, [answer.rule], (rule) => ruleRow(rule), NO_RULES);
  showWidening(answer.widens);
  for (const warning of answer.warnings) warn(`warning: ${warning}`);
}

/** Newly permitted cells that are listed. */
const MOST_CELLS = 20;

/** A changed rule before and after, and what it newly permits. */
export function showRuleChange(change: RuleChangeAnswer, { json }: Format): void {
  if (json) {
    printJson(change);
    return;
  }
  printRuleTable(
    ['', ...RULE_TITLES],
    [change.before, change.rule],
    (rule, index) => [{ text: index === 0 ? 'before' : 'after' }, ...ruleRow(rule)],
    NO_RULES,
  );
  showWidening(change.widens);
  for (const warning of change.warnings) warn(`warning: ${warning}`);
}

export function showWidening(widens: RuleWidening | null): void {
  if (widens === null) {
    print('New access could not be computed in time.');
    return;
  }
  if (widens.count === 0) {
    print('No new access.');
    return;
  }
  const [only] = widens.cells;
  if (widens.count === 1 && only !== undefined) {
    print(`1 access is new: ${newAccess(only)}.`);
    return;
  }
  const shown = widens.cells.slice(0, MOST_CELLS);
  const more = widens.count > shown.length ? `; the first ${shown.length} are shown` : '';
  print(`${widens.count} accesses are new${more}:`);
  const rows = shown.map(({ holder, mapping, credential, addresses, moreAddresses }): Cell[] => [
    { text: holder.scope === 'key' ? holder.name || holder.id : nameOf(holder) },
    { text: mapping },
    callableCell(credential),
    { text: addressText([...addresses, ...(moreAddresses === 0 ? [] : [`${moreAddresses} more`])]) },
  ]);
  printTable([free('KEY OR MEMBER'), 'MAPPING', 'CALLABLE', free('FROM ADDRESS')], rows, '');
}

function newAccess({ holder, mapping, credential, addresses, moreAddresses }: RuleWidening['cells'][number]): string {
  const ranges = addressText([...addresses, ...(moreAddresses === 0 ? [] : [`${moreAddresses} more`])]);
  const from = ranges === 'any' ? '' : ` from ${ranges}`;
  return `${plainText(holder.name || holder.id)} may call ${mapping}${from}${credential ? '' : ', for which there is no credential'}`;
}

export function showRemovedRule(deletion: RuleDeletion, { json }: Format): void {
  if (json) {
    printJson(deletion);
    return;
  }
  print(`Removed ${deletion.id}.`);
  showWidening(deletion.widens);
  for (const warning of deletion.warnings ?? []) warn(`warning: ${warning}`);
}

interface Steps<Plan, Answer> {
  plan(workspace: Workspace): Plan;
  /** @throws StaleRules */
  write(workspace: Workspace, judged: JudgedChange): Answer;
}

/** Writes rules, or who is in a group, as the server does, but judges in this process what that newly permits. */
export const runJudged = <Plan extends ChangePlan & (RuleReplacement | Regrouping), Answer>(
  env: Environment,
  org: string | undefined,
  { plan, write }: Steps<Plan, Answer>,
): Promise<Answer> =>
  changeJudged({
    plan: () => inWorkspace(env, 'read', org, plan),
    judge: async (planned: Plan) => {
      // Loaded only where something may be newly permitted, with the policy engine: all else takes a fraction of the time.
      const { judgeWidening } = await import('./policy/policy-world.ts');
      return judgeWidening(env, org, planned, planned.failOnNewAccess);
    },
    write: (judged) => inWorkspace(env, 'write', org, (workspace) => write(workspace, judged)),
  });

/** The option of `runRehearsed`. */
export interface MustNotWiden {
  readonly failOnNewAccess?: true;
}

export const FAIL_ON_NEW_ACCESS = [
  '--fail-on-new-access',
  'refuse a change that permits what was not permitted',
] as const;

/** Makes any change, and adds to its answer which access that adds. @param work is done once to judge it, undone, and done again */
export const runRehearsed = <Answer extends object>(
  env: Environment,
  { org, failOnNewAccess }: MustNotWiden & { readonly org?: string },
  work: (workspace: Workspace) => Answer,
  ...dispensable: readonly Dispensable[]
): Promise<Answer & { readonly widens: RuleWidening | null }> =>
  changeRehearsed({
    // Loaded only by a change, with the policy engine.
    plan: async () => {
      const { rehearseIn } = await import('./policy/policy-world.ts');
      return rehearseIn(env, org, work, failOnNewAccess === true, dispensable);
    },
    judge: async (change) => {
      const { judgeRehearsal } = await import('./policy/policy-world.ts');
      return judgeRehearsal(env, change);
    },
    write: (check) =>
      inWorkspace(
        env,
        'write',
        org,
        (workspace) => {
          const widens = check(workspace.db);
          return { ...work(workspace), widens };
        },
        ...dispensable,
      ),
  });
