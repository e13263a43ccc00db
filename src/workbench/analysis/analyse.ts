import { policyRevision } from '../../core/authorize.ts';
import { ApiError, notFound } from '../../domain/errors.ts';
import type {
  AccessDiff,
  AccessReport,
  DraftRule,
  EvaluateRequest,
  Explanation,
  ReplayReport,
  RuleWidening,
} from '../../generated/types.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import type { Database } from '../../store/db/database.ts';
import { replay, replayBy } from '../replay/replay.ts';
import { organizationSets, type ReportOptions } from '../world/candidates.ts';
import { holdersOf } from '../world/holders.ts';
import { createJudges, JUDGE_ENGINE, type Judges, type OnProgress } from '../world/judges.ts';
import { type Installation, readWorld, type World } from '../world/world.ts';
import { accessReport } from './access.ts';
import type { AnalysisJob, ReplayRules } from './analyst.ts';
import { accessDiff } from './diff.ts';
import { applyDrafts, draftWarnings, widening, withRule } from './drafts.ts';
import { explain, readCall } from './explain.ts';
import { type ComparedWorlds, comparedWorlds, rehearsedWidening } from './rehearsal.ts';

export interface AnalysisTools {
  readonly db: Database;
  readonly installation: Installation;
  readonly bundle: PolicyBundle;
  /** Epoch ms. */
  readonly now: number;
}

export interface AnalysisResult {
  readonly body: AccessReport | AccessDiff | Explanation | RuleWidening | ReplayReport;
  readonly policyRevision: string;
}

/** Does one job, on the rules as they are now. @param onProgress of a replay. @throws ApiError, PolicyFailure */
export async function analyse(
  { db, installation, bundle, now }: AnalysisTools,
  job: AnalysisJob,
  onProgress: OnProgress = () => {},
): Promise<AnalysisResult> {
  const world = readWorld(db, installation, job.organizationId);
  const revision = policyRevision(bundle.digest, world.organizations.get(job.organizationId)?.ruleRevision ?? 0);
  switch (job.kind) {
    case 'access': {
      const holder = holdersOf(world).find(({ id, scope }) => scope === 'key' && id === job.keyId);
      if (holder === undefined) throw notFound('There is no such key that calls models.');
      const body = withPdp(bundle, (pdp) => accessReport(pdp, world, holder, revision, job));
      return { body, policyRevision: revision };
    }
    case 'evaluate':
      return { body: withPdp(bundle, (pdp) => evaluate(pdp, world, job, { revision, now })), policyRevision: revision };
    case 'diff':
      return { body: await draftDiff(bundle, world, job.rules, job), policyRevision: revision };
    case 'replacements': {
      const after = job.rules.reduce(withRule, world);
      return {
        body: await withJudges(bundle, world, (judges) => accessDiff(judges, world, after, job)),
        policyRevision: revision,
      };
    }
    case 'widening':
    case 'regrouping':
      return {
        body: await withJudges(bundle, world, (judges) => widening(judges, world, job)),
        policyRevision: revision,
      };
    case 'rehearsed':
      return { body: await judgeRehearsal(bundle, comparedWorlds(world, job)), policyRevision: revision };
    case 'replay': {
      const judging = judgingRules(world, job.judged);
      const { by } = job.judged;
      const body = withPdp(bundle, (pdp) =>
        replay(db, replayBy(pdp, judging.world, by, judging.warnings), job, onProgress),
      );
      return { body, policyRevision: revision };
    }
  }
}

function withPdp<T>(bundle: PolicyBundle, work: (pdp: Pdp) => T): T {
  const pdp = createPdp(bundle, JUDGE_ENGINE);
  try {
    return work(pdp);
  } finally {
    pdp.close();
  }
}

/** @throws ApiError 400 for a draft that cannot be, 409 for a folder that was planned for other rules */
function judgingRules(
  world: World,
  judged: ReplayRules,
): { readonly world: World; readonly warnings: readonly string[] } {
  switch (judged.by) {
    case 'current':
    case 'recorded':
      return { world, warnings: [] };
    case 'draft': {
      const drafted = applyDrafts(world, judged.rules);
      return { world: drafted, warnings: draftWarnings(drafted, judged.rules) };
    }
    case 'folder': {
      const [organization] = world.organizations.values();
      if (organization?.ruleRevision !== judged.ruleRevision) {
        throw new ApiError(409, 'rules_changed', 'The rules changed while the folder was planned: try again.');
      }
      return { world: judged.rules.reduce(withRule, world), warnings: judged.warnings };
    }
  }
}

async function draftDiff(
  bundle: PolicyBundle,
  before: World,
  drafts: readonly DraftRule[],
  shown: ReportOptions,
): Promise<AccessDiff> {
  const after = applyDrafts(before, drafts);
  const diff = await withJudges(bundle, before, (judges) => accessDiff(judges, before, after, shown));
  return { ...diff, warnings: draftWarnings(after, drafts) };
}

async function judgeRehearsal(bundle: PolicyBundle, worlds: ComparedWorlds): Promise<RuleWidening> {
  if (worlds.mappings.named.length === 0) return { count: 0, cells: [] };
  const judges = createJudges(bundle, worlds.mappings.judged, 0);
  try {
    return await rehearsedWidening(judges, worlds);
  } finally {
    await judges.close();
  }
}

/** Judges in this thread, by the mappings of the world's only organization. */
async function withJudges<T>(bundle: PolicyBundle, world: World, work: (judges: Judges) => Promise<T>): Promise<T> {
  const [part] = organizationSets([world]);
  const judges = createJudges(bundle, part?.mappings ?? [], 0);
  try {
    return await work(judges);
  } finally {
    await judges.close();
  }
}

const DRAFT_KEY = 'key_draft';
const DRAFT_MEMBER = 'mem_draft';

interface EvaluateJob {
  readonly organizationId: string;
  readonly body: EvaluateRequest;
}

/** The request by a stored key, or by one that is not there: it belongs to nobody and has the draft rules alone. */
function evaluate(
  pdp: Pdp,
  stored: World,
  { organizationId, body }: EvaluateJob,
  { revision, now }: { readonly revision: string; readonly now: number },
): Explanation {
  const keyId = body.key ?? DRAFT_KEY;
  const drafts = body.rules ?? [];
  const world = applyDrafts(body.key === undefined ? withDraftKey(stored, organizationId) : stored, drafts, keyId);
  const key = world.keys.get(keyId);
  if (key === undefined) throw notFound('There is no such key that calls models.');
  const call = readCall(world, key, body.request, now, '/request');
  return { ...explain(pdp, world, key, call, revision), warnings: draftWarnings(world, drafts) };
}

const withDraftKey = (world: World, organizationId: string): World => ({
  ...world,
  members: new Map([...world.members, [DRAFT_MEMBER, { id: DRAFT_MEMBER, organizationId, email: '', rules: [] }]]),
  keys: new Map([
    ...world.keys,
    [
      DRAFT_KEY,
      { id: DRAFT_KEY, organizationId, projectId: null, memberId: DRAFT_MEMBER, description: '', tags: [], rules: [] },
    ],
  ]),
});
