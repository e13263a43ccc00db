import { type Actor, checkManagesOrganization } from '../../../admin/audit/actor.ts';
import { planView } from '../../../admin/folder/apply-folder.ts';
import { readRangeFilter } from '../../../admin/log/log-query.ts';
import { checkShape } from '../../../domain/check-shape.ts';
import { invalidRequest } from '../../../domain/errors.ts';
import type { PolicyFolder, ReplayRequest } from '../../../generated/types.ts';
import { validateReplayRequest } from '../../../generated/validators.js';
import type { ReplayRules } from '../../../workbench/analysis/analysis-job.ts';
import { replacementsOf } from '../../../workbench/analysis/drafts.ts';
import { streamReplay } from '../../../workbench/analysis/stream-replay.ts';
import { FOLDER_EXPLANATIONS } from '../../../workbench/folder/policy-folder.ts';
import { REPLAY_DIMENSIONS } from '../../../workbench/replay/replay.ts';
import { placed } from '../../../workbench/world/world-document.ts';
import { sendFormed } from '../../answer/send-events.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answerAnalysis, type MasterDeps } from './master-route.ts';
import { planFolder } from './policy-folder.ts';

/** Decisions that are replayed for one request. */
const MOST_REPLAYED = 100_000;

/** `…/policy/replay`: what rules, a folder or a bundle would have made of logged calls. */
export function policyReplayHandlers(deps: MasterDeps) {
  const { store, clock, analyst } = deps;
  return {
    replayPolicy: async (ctx) => {
      const actor = actorOf(ctx);
      const asked = checkShape(validateReplayRequest, ctx.state.body, FOLDER_EXPLANATIONS);
      const { recorded: _, rules, folder, bundle, groupBy = REPLAY_DIMENSIONS, stream = false, ...query } = asked;
      if ([rules, folder, bundle].some((each) => each !== undefined)) checkManagesOrganization(actor);
      const judged = await readRules(deps, actor, asked);
      const filter = await store.read((db) => readRangeFilter(db, actor, query, clock.now()));
      const { organizationId } = actor;
      const { signal } = ctx.state;
      const job = { kind: 'replay', organizationId, judged, filter, groupBy, most: MOST_REPLAYED } as const;
      const archive = bundle === undefined ? undefined : Buffer.from(bundle, 'base64');
      const events = streamReplay(
        (progress) =>
          archive === undefined
            ? analyst.analyse(job, progress)
            : analyst.analyseBy(archive, job, { progress, signal }),
        signal,
      );
      if (!stream) {
        for await (const event of events) if ('json' in event) answerAnalysis(ctx, event);
        return;
      }
      await sendFormed(deps, ctx, events, {
        nameOf: (event) => ('json' in event ? 'report' : 'progress'),
        formed: (event) => ('json' in event ? [event.json] : event),
      });
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** @throws ApiError 400 for what excludes each other, as on the command line, and of the folder */
async function readRules(
  deps: MasterDeps,
  actor: Actor,
  { recorded = false, rules, folder }: ReplayRequest,
): Promise<ReplayRules> {
  if (rules !== undefined && recorded) throw invalidRequest('/rules are not judged with /recorded.', '/rules');
  if (folder !== undefined && recorded) throw invalidRequest('/folder is not judged with /recorded.', '/folder');
  if (folder !== undefined && rules !== undefined)
    throw invalidRequest('/folder is not judged with /rules.', '/folder');
  if (folder !== undefined) return rulesOfFolder(deps, actor, folder);
  if (rules !== undefined) return { by: 'draft', rules };
  return { by: recorded ? 'recorded' : 'current' };
}

/** The rules once the folder is applied. @throws ApiError as `planFolder`, at places below `/folder` */
async function rulesOfFolder(deps: MasterDeps, actor: Actor, folder: PolicyFolder): Promise<ReplayRules> {
  const plan = await planFolder(deps, actor, folder, { prune: false }).catch((error: unknown) =>
    placed('/folder', (): never => {
      throw error;
    }),
  );
  return {
    by: 'folder',
    rules: replacementsOf(planView(plan, null).changes),
    warnings: plan.warnings.map(({ pointer, text }) => `/folder${pointer}: ${text}`),
    ruleRevision: plan.ruleRevision,
  };
}
