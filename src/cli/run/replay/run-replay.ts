import { readRangeFilter } from '../../../admin/log/log-query.ts';
import type { ReplayDimension, ReplayReport } from '../../../generated/types.ts';
import { counted } from '../../../lib/counted.ts';
import { createPdp } from '../../../policy/pdp.ts';
import { bundleInFile } from '../../../workbench/bundles/bundle-in-force.ts';
import { REPLAY_DIMENSIONS, type ReplayBy, replay, replayBy } from '../../../workbench/replay/replay.ts';
import { JUDGE_ENGINE } from '../../../workbench/world/judges.ts';
import { readWorld } from '../../../workbench/world/world.ts';
import { showReplay } from '../../output/replay-output.ts';
import { type CommonOptions, named } from '../../terminal/common-options.ts';
import { progressBar } from '../../terminal/progress.ts';
import { beginOf, type TimeOptions } from '../../terminal/time-options.ts';
import { type DraftedWorld, policyOf, withDraftFile } from '../policy-world.ts';
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
  const report = await inWorkspace(env, 'read', options.org, (workspace) => replayIn(env, workspace, options));
  showReplay(report, options);
  const faults = faultsOf(report, options.failOn ?? []);
  if (faults.length > 0) throw new Error(`${faults.join(', ')}.`);
}

function replayIn(env: Environment, workspace: Workspace, options: ReplayOptions): ReplayReport {
  const { db, actor, now } = workspace;
  const { key, member, model, to, groupBy = REPLAY_DIMENSIONS } = options;
  const query = named({
    keyId: key === undefined ? undefined : keyId(workspace, key),
    memberId: member,
    model,
    from: beginOf(options, now),
    to,
  });
  const filter = readRangeFilter(db, actor, query, now);
  const bar = progressBar('judging');
  const by = judgedBy(env, workspace, options);
  try {
    return replay(db, by, { filter, groupBy }, bar.show);
  } finally {
    bar.end();
    by.pdp.close();
  }
}

/** By which policy and rules. */
function judgedBy(env: Environment, workspace: Workspace, options: ReplayOptions): ReplayBy {
  const { by, world, warnings } = judgingRules(workspace, options);
  const bundle = options.bundle === undefined ? policyOf(env) : bundleInFile(options.bundle);
  return replayBy(createPdp(bundle, JUDGE_ENGINE), world, by, warnings);
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
