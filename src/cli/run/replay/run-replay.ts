import { readRangeFilter } from '../../../admin/log/log-query.ts';
import type { ReplayDimension, ReplayReport } from '../../../generated/types.ts';
import { counted } from '../../../lib/counted.ts';
import { createPdp } from '../../../policy/pdp.ts';
import { databasePath } from '../../../store/db/data-dir.ts';
import { bundleInFile } from '../../../workbench/bundles/bundle-in-force.ts';
import {
  judgeVerdictsByThreads,
  rulesOf,
  type VerdictWorkerData,
  WORTH_VERDICT_THREADS,
} from '../../../workbench/replay/judge-threads.ts';
import { createVerdictJudge } from '../../../workbench/replay/judge-verdicts.ts';
import {
  type BegunReplay,
  beginReplay,
  REPLAY_DIMENSIONS,
  type ReplayScope,
  replayBy,
} from '../../../workbench/replay/replay.ts';
import { JUDGE_ENGINE, type OnProgress } from '../../../workbench/world/judges.ts';
import { readWorld } from '../../../workbench/world/world.ts';
import { showReplay } from '../../output/replay-output.ts';
import { type CommonOptions, named } from '../../terminal/common-options.ts';
import { progressBar } from '../../terminal/progress.ts';
import { beginOf, type TimeOptions } from '../../terminal/time-options.ts';
import { type DraftedWorld, policyOf, THREADS, withDraftFile } from '../policy-world.ts';
import { keyId } from '../references.ts';
import { withPolicyFolder } from '../run-policy-plan.ts';
import { type Environment, inWorkspace, type Workspace } from '../workspace.ts';

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
  const bar = progressBar('judging');
  try {
    const { begun, rest } = await inWorkspace(env, 'read', options.org, (workspace) =>
      begin(env, workspace, options, bar.show),
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
  readonly rest: VerdictWorkerData | undefined;
}

/** Finds what is to be judged again, and judges it here if it is little. */
function begin(env: Environment, workspace: Workspace, options: ReplayOptions, show: OnProgress): Begun {
  const { db, config } = workspace;
  const { by, world, warnings } = judgingRules(workspace, options);
  const bundle = options.bundle === undefined ? policyOf(env) : bundleInFile(options.bundle);
  const pdp = createPdp(bundle, JUDGE_ENGINE);
  try {
    const judging = replayBy(pdp, world, by, warnings);
    const begun = beginReplay(db, judging, scopeOf(workspace, options), show);
    if (begun.verdicts.length >= WORTH_VERDICT_THREADS) {
      const rules = by === 'recorded' ? null : rulesOf(world);
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

/** What makes the command fail. A decision that cannot be judged, or not in full, hides whatever is asked of it. */
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
