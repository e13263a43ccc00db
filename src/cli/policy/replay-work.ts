import { readRangeFilter } from '../../admin/log/log-query.ts';
import { withName } from '../../domain/id.ts';
import type {
  ReplayChange,
  ReplayDimension,
  ReplayGroup,
  ReplayReport,
  ReplayUnjudged,
} from '../../generated/types.ts';
import { counted } from '../../lib/text.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { createPdp } from '../../policy/pdp.ts';
import { databasePath } from '../../store/db/data-dir.ts';
import { bundleInFile } from '../../workbench/bundles/bundle-source.ts';
import { createVerdictJudge, type VerdictJobData } from '../../workbench/replay/judge-again.ts';
import { judgeVerdictsByThreads, ruleWorldOf, WORTH_VERDICT_THREADS } from '../../workbench/replay/judge-threads.ts';
import {
  type BegunReplay,
  beginReplay,
  REPLAY_DIMENSIONS,
  type ReplayScope,
  replayBy,
} from '../../workbench/replay/replay.ts';
import { JUDGE_ENGINE, type OnProgress } from '../../workbench/world/judges.ts';
import { readWorld } from '../../workbench/world/world.ts';
import { keyId } from '../record-references.ts';
import { beginOf, type CommonOptions, named, type TimeOptions } from '../terminal/options.ts';
import { type Cell, free, print, printJson, printTable, progressBar, warn } from '../terminal/output.ts';
import { type Environment, inWorkspace, type Workspace } from '../workspace.ts';
import { scopeText } from './access-output.ts';
import { withPolicyFolder } from './folder-work.ts';
import { type DraftedWorld, policyOf, THREADS, withDraftFile } from './policy-world.ts';

type FailOn = 'new-denial' | 'new-access';

export interface ReplayOptions extends CommonOptions, TimeOptions {
  readonly key?: string;
  readonly member?: string;
  readonly model?: string;
  readonly draft?: string;
  readonly folder?: string;
  readonly bundle?: string;
  readonly recorded?: true;
  readonly groupBy?: readonly ReplayDimension[];
  readonly failOn?: readonly FailOn[];
}

/** `portcullis replay`. */
export async function runReplay(env: Environment, options: ReplayOptions): Promise<void> {
  const report = await replay(env, options);
  showReplay(report, options);
  const faults = faultsOf(report, options.failOn ?? []);
  if (faults.length > 0) throw new Error(`${faults.join(', ')}.`);
}

async function replay(env: Environment, options: ReplayOptions): Promise<ReplayReport> {
  const bundle = options.bundle === undefined ? policyOf(env) : await bundleInFile(options.bundle);
  const bar = progressBar('judging');
  try {
    const { begun, rest } = await inWorkspace(env, 'read', options.org, (workspace) =>
      begin(bundle, workspace, options, bar.show),
    );
    if (rest !== undefined) {
      for await (const judged of judgeVerdictsByThreads(rest, begun.verdicts, THREADS)) begun.take(judged);
    }
    return await inWorkspace(env, 'read', options.org, ({ db }) => begun.report(db));
  } finally {
    bar.end();
  }
}

interface Begun {
  readonly begun: BegunReplay;
  /** With what threads judge; undefined: all is judged. */
  readonly rest: VerdictJobData | undefined;
}

/** Finds what is to be judged again, and judges it here if it is little. */
function begin(bundle: PolicyBundle, workspace: Workspace, options: ReplayOptions, show: OnProgress): Begun {
  const { db, config } = workspace;
  const { by, world, warnings } = judgingRules(workspace, options);
  const pdp = createPdp(bundle, JUDGE_ENGINE);
  try {
    const judging = replayBy(pdp, world, by, warnings);
    const begun = beginReplay(db, judging, scopeOf(workspace, options), show);
    if (begun.verdicts.length >= WORTH_VERDICT_THREADS) {
      const rules = by === 'recorded' ? null : ruleWorldOf(world);
      return { begun, rest: { databasePath: databasePath(config.dataDir), bundle, rules } };
    }
    for (const judged of createVerdictJudge(db, judging)(begun.verdicts)) begun.take(judged);
    return { begun, rest: undefined };
  } finally {
    pdp.close();
  }
}

function scopeOf(workspace: Workspace, options: ReplayOptions): ReplayScope {
  const { db, actor, now } = workspace;
  const { key, member, model, to, groupBy = REPLAY_DIMENSIONS } = options;
  const query = named({
    keyId: key === undefined ? undefined : keyId(workspace, key),
    memberId: member,
    model,
    from: beginOf(options, now),
    to,
  });
  return { filter: readRangeFilter(db, actor, query, now), groupBy };
}

function judgingRules(
  workspace: Workspace,
  { draft, folder, recorded }: ReplayOptions,
): DraftedWorld & { readonly by: ReplayReport['by'] } {
  if (folder !== undefined) return { by: 'folder', ...withPolicyFolder(workspace, folder) };
  const { db, installation, actor } = workspace;
  const world = readWorld(db, installation(), actor.organizationId);
  if (draft !== undefined) return { by: 'draft', ...withDraftFile(world, draft) };
  return { by: recorded ? 'recorded' : 'current', world, warnings: [] };
}

/** Reasons for which the command fails. A decision that cannot be judged, or not in full, hides what `--fail-on` asks. */
function faultsOf({ changed, unjudged, withoutFacts, recorded }: ReplayReport, failOn: readonly FailOn[]): string[] {
  const access = changed.permitted + changed.widened;
  const isAsked = failOn.length > 0 || recorded !== null;
  const hidden = unjudged.filter(({ reason }) => isAsked && reason !== 'subject_gone');
  const count = hidden.reduce((sum, { decisions }) => sum + decisions, 0);
  return [
    ...(recorded !== null && recorded.different > 0
      ? [`${counted(recorded.different, 'decision')} came out differently`]
      : []),
    ...(failOn.includes('new-denial') && changed.denied > 0 ? [`${changed.denied} newly denied`] : []),
    ...(failOn.includes('new-access') && access > 0 ? [`${access} newly permitted`] : []),
    ...(count > 0 ? [`${counted(count, 'decision')} not judged`] : []),
    ...(failOn.length > 0 && withoutFacts > 0 ? [`${counted(withoutFacts, 'decision')} without facts`] : []),
  ];
}

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

/** Prints the decisions that would change, and how many would not. */
function showReplay(report: ReplayReport, { json }: { readonly json?: true }): void {
  if (json) {
    printJson(report);
    return;
  }
  showGroups(report);
  const { from, to, decisions, by, policyRevision } = report;
  print(`${counted(decisions, 'decision')} from ${from} to ${to}, ${RULES[by]} (policy ${policyRevision}):`);
  for (const line of changeCounts(report)) print(line);
  showDifferences(report);
  for (const warning of report.warnings) warn(`warning: ${warning}`);
}

function changeCounts({ changed, unchanged, unjudged, otherPolicies, withoutFacts, recorded }: ReplayReport): string[] {
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
