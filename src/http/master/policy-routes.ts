import { type Actor, checkManagesOrganization } from '../../admin/audit/audit-trail.ts';
import { appliedView, applyFolder, checkNoNewAccess, planView } from '../../admin/folder/apply-folder.ts';
import { type FolderPlan, type PlanOptions, readFolderPlan } from '../../admin/folder/plan-folder.ts';
import { getKey } from '../../admin/keys/keys.ts';
import { readRangeFilter } from '../../admin/log/log-query.ts';
import { StaleRules, writeJudged } from '../../admin/rules/judged-change.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { type ApiError, invalidField, invalidRequest } from '../../domain/errors.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  AccessDiff,
  DraftRule,
  PolicyBundleAnswer,
  PolicyFolder,
  PolicyPlan,
  ReplayRequest,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type ReplayRules, streamReplay } from '../../workbench/analysis/analyst.ts';
import { replacementsOf } from '../../workbench/analysis/drafts.ts';
import { FOLDER_EXPLANATIONS, NAMED_PARTS, readFolderDocument } from '../../workbench/folder/policy-folder.ts';
import { REPLAY_DIMENSIONS } from '../../workbench/replay/replay.ts';
import { placed } from '../../workbench/world/world-document.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import { sendFormed } from '../inference.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { flag, queryParameter } from '../query.ts';
import type { Handlers } from '../routes.ts';
import type { RequestContext } from '../state.ts';
import { answer, answerAnalysis, pathParameter } from './master-route.ts';

const validateAccessDiff = validator('AccessDiff');

/** `…/keys/{id}/access` and `…/policy/…`: what the rules, stored or drafted, mean. */
export function policyHandlers(app: ManagementContext) {
  const { store, clock, analyst } = app;
  const checkSees = (ctx: RequestContext, keyId: string) =>
    store.read((db) => getKey(db, actorOf(ctx), keyId, clock.now()));

  return {
    getKeyAccess: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const keyId = pathParameter(ctx, 'id');
      await checkSees(ctx, keyId);
      answerAnalysis(ctx, await analyst.analyse({ kind: 'access', organizationId, keyId, ...shown(ctx) }));
    },
    evaluatePolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const body = checkShape(validator('EvaluateRequest'), ctx.state.body);
      if (body.key === undefined || (body.rules ?? []).some(concernsOthers)) checkManagesOrganization(actorOf(ctx));
      if (body.key !== undefined) await checkSees(ctx, body.key);
      answerAnalysis(ctx, await analyst.analyse({ kind: 'evaluate', organizationId, body }));
    },
    diffPolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const { rules } = checkShape(validator('DraftRules'), ctx.state.body);
      checkManagesOrganization(actorOf(ctx));
      answerAnalysis(ctx, await analyst.analyse({ kind: 'diff', organizationId, rules, ...shown(ctx) }));
    },
    getPolicyBundle: async (ctx) => {
      checkManagesOrganization(actorOf(ctx));
      const { digest, revision = null, source, activatedAt, checkedAt, refusal } = app.policy.inForce().status;
      const body: PolicyBundleAnswer = {
        policy: {
          digest,
          revision,
          origin: source === undefined ? 'installation' : 'bundle',
          activatedAt: formatTime(activatedAt),
          checkedAt: checkedAt === undefined ? null : formatTime(checkedAt),
          refusal: refusal === undefined ? null : { code: refusal.code, at: formatTime(refusal.at) },
        },
        // An organization does not learn where the operator keeps bundles.
        history: app.policy.history().map(({ source: _, ...offer }) => offer),
      };
      answer(ctx, body);
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** Whether what cannot be called for lack of a credential is in the answer too. @throws ApiError 400 */
const shown = (ctx: RequestContext) => ({ withoutCredential: flag(ctx, 'withoutCredential') });

/** A draft that is not a new rule of the key that is asked about: developers have no business with it. */
const concernsOthers = ({ id, key, member, group, organization }: DraftRule): boolean =>
  [id, key, member, group, organization].some((owner) => owner !== undefined);

/** Most that one request may state and change: its thread reads and writes all of it while others wait. */
const MOST_STATED = 1000;
const MOST_CHANGES = 500;

interface PlannedFolder {
  readonly plan: FolderPlan;
  readonly failOnNewAccess: boolean;
}

/** `…/policy/plan` and `…/policy/apply`: rules that a folder in git states. */
export function policyFolderHandlers(app: ManagementContext) {
  const { store, analyst } = app;
  const answerJudged = async (
    ctx: RequestContext,
    options: Omit<PlanOptions, 'prune'> & { readonly failOnNewAccess: boolean },
    write: (plan: FolderPlan, access: AccessDiff | null) => Promise<PolicyPlan>,
  ): Promise<void> => {
    const actor = actorOf(ctx);
    const folder = readFolderDocument(ctx.state.body);
    const [prune, withoutCredential] = [flag(ctx, 'prune'), flag(ctx, 'withoutCredential')];
    const { failOnNewAccess, ...planned } = options;
    const done = await writeJudged({
      plan: async (): Promise<PlannedFolder> => ({
        plan: await planFolder(app, actor, folder, { ...planned, prune }),
        failOnNewAccess,
      }),
      judge: async ({ plan }) => {
        const rules = replacementsOf(planView(plan, null).changes);
        const job = { kind: 'replacements', organizationId: actor.organizationId, rules, withoutCredential } as const;
        return accessIn((await analyst.analyse(job)).json);
      },
      write: ({ plan }, access) => write(plan, access),
    });
    answer(ctx, done);
  };
  return {
    planPolicyFolder: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      await answerJudged(ctx, { failOnNewAccess: false }, async (plan, access) => {
        const { ruleRevision } = await store.read((db) => getOrganization(db, organizationId));
        if (ruleRevision !== plan.ruleRevision) throw new StaleRules();
        return planView(plan, access);
      });
    },
    applyPolicyFolder: async (ctx) => {
      const actor = actorOf(ctx);
      const failOnNewAccess = flag(ctx, 'failOnNewAccess');
      const reviewed = { ruleRevision: revisionIn(ctx), digest: queryParameter(ctx, 'digest') };
      const revision = queryParameter(ctx, 'revision');
      await answerJudged(ctx, { reviewed, failOnNewAccess }, async (plan, access) => {
        if (failOnNewAccess) checkNoNewAccess(access);
        checkNumber('changes', plan.changes.length, MOST_CHANGES);
        return appliedView(await store.write((db, now) => applyFolder(db, actor, plan, { revision, now })), access);
      });
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** On the rules as they are now. @throws ApiError as `readFolderPlan`, and 400 for more than one request may state */
async function planFolder(
  { store, catalog, trustedProxies }: Pick<ManagementContext, 'store' | 'catalog' | 'trustedProxies'>,
  actor: Actor,
  folder: PolicyFolder,
  options: PlanOptions,
): Promise<FolderPlan> {
  checkNumber('owners and rules', stated(folder), MOST_STATED);
  const world = { catalog, trustedProxies };
  return store.read((db) => db.snapshot(() => readFolderPlan(db, actor, folder, options, world)));
}

/** Owners count as their rules do. */
const stated = ({ organization, ...named }: PolicyFolder): number =>
  [
    ...(organization === undefined ? [] : [organization]),
    ...NAMED_PARTS.flatMap((part) => Object.values(named[part] ?? {})),
  ].reduce((sum, { rules }) => sum + 1 + Object.keys(rules).length, 0);

/** @param what the number counts, in words. @throws ApiError 400 */
function checkNumber(what: string, number: number, most: number): void {
  if (number <= most) return;
  throw invalidRequest(
    `${number} ${what} are more than the ${most} that one request may have: use the command line, when few call.`,
  );
}

/** The revision of the rules that a plan was reviewed for. @throws ApiError 400 */
function revisionIn(ctx: RequestContext): number | undefined {
  const text = queryParameter(ctx, 'ruleRevision');
  if (text === undefined || /^\d{1,15}$/.test(text)) return text === undefined ? text : Number(text);
  throw invalidRequest('The query parameter ruleRevision must be a whole number.', '/ruleRevision');
}

/** The answer of the analyst, which comes as bytes. */
function accessIn(json: Uint8Array): AccessDiff {
  const access: unknown = JSON.parse(new TextDecoder().decode(json));
  if (!validateAccessDiff(access)) throw new Error('The analyst answered with something else.');
  return access;
}

/** Decisions that are replayed for one request. */
const MOST_REPLAYED = 100_000;

/** `…/policy/replay`: what rules, a folder or a bundle would have made of logged calls. */
export function policyReplayHandlers(app: ManagementContext) {
  const { store, clock, analyst } = app;
  return {
    replayPolicy: async (ctx) => {
      const actor = actorOf(ctx);
      const asked = checkShape(validator('ReplayRequest'), ctx.state.body, FOLDER_EXPLANATIONS);
      const { recorded: _, rules, folder, bundle, groupBy = REPLAY_DIMENSIONS, stream = false, ...query } = asked;
      if ([rules, folder, bundle].some((each) => each !== undefined)) checkManagesOrganization(actor);
      const judged = await readRules(app, actor, asked);
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
      await sendFormed(app, ctx, events, {
        nameOf: (event) => ('json' in event ? 'report' : 'progress'),
        formed: (event) => ('json' in event ? [event.json] : event),
      });
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** @throws ApiError 400 for what excludes each other, as on the command line, and of the folder */
async function readRules(
  app: ManagementContext,
  actor: Actor,
  { recorded = false, rules, folder }: ReplayRequest,
): Promise<ReplayRules> {
  if (rules !== undefined && recorded) throw notWith('/rules', 'are', '/recorded');
  if (folder !== undefined && recorded) throw notWith('/folder', 'is', '/recorded');
  if (folder !== undefined && rules !== undefined) throw notWith('/folder', 'is', '/rules');
  if (folder !== undefined) return rulesOfFolder(app, actor, folder);
  if (rules !== undefined) return { by: 'draft', rules };
  return { by: recorded ? 'recorded' : 'current' };
}

const notWith = (pointer: string, be: 'are' | 'is', other: string): ApiError =>
  invalidField(pointer, ({ field }) => `${be} not judged with ${field(other)}`);

/** The rules once the folder is applied. @throws ApiError as `planFolder`, at places below `/folder` */
async function rulesOfFolder(app: ManagementContext, actor: Actor, folder: PolicyFolder): Promise<ReplayRules> {
  const plan = await planFolder(app, actor, folder, { prune: false }).catch((error: unknown) =>
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
