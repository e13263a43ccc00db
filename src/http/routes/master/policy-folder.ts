import type { Actor } from '../../../admin/audit/actor.ts';
import { appliedView, applyFolder, checkNoNewAccess, planView } from '../../../admin/folder/apply-folder.ts';
import { type FolderPlan, type PlanOptions, readFolderPlan } from '../../../admin/folder/plan-folder.ts';
import { StaleRules, writeJudged } from '../../../admin/rules/judged-change.ts';
import { invalidRequest } from '../../../domain/errors.ts';
import type { AccessDiff, PolicyFolder, PolicyPlan } from '../../../generated/types.ts';
import { validateAccessDiff } from '../../../generated/validators.js';
import { getOrganization } from '../../../store/tenants/tenants.ts';
import { replacementsOf } from '../../../workbench/analysis/drafts.ts';
import { NAMED_PARTS, readFolderDocument } from '../../../workbench/folder/policy-folder.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { flag, queryParameter } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterDeps } from './master-route.ts';

/** What one request may state and change: its thread reads and writes all of it while others wait. */
const MOST_STATED = 1000;
const MOST_CHANGES = 500;

interface PlannedFolder {
  readonly plan: FolderPlan;
  readonly failOnNewAccess: boolean;
}

/** `…/policy/plan` and `…/policy/apply`: rules that a folder in git states. */
export function policyFolderHandlers(deps: MasterDeps) {
  const { store, analyst } = deps;
  const answerJudged = async (
    ctx: AppContext,
    options: Omit<PlanOptions, 'prune'> & { readonly failOnNewAccess: boolean },
    write: (plan: FolderPlan, access: AccessDiff | null) => Promise<PolicyPlan>,
  ): Promise<void> => {
    const actor = actorOf(ctx);
    const folder = readFolderDocument(ctx.state.body);
    const [prune, withoutCredential] = [flag(ctx, 'prune'), flag(ctx, 'withoutCredential')];
    const { failOnNewAccess, ...planned } = options;
    const done = await writeJudged({
      plan: async (): Promise<PlannedFolder> => ({
        plan: await planFolder(deps, actor, folder, { ...planned, prune }),
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
export async function planFolder(
  { store, catalog, trustedProxies }: Pick<MasterDeps, 'store' | 'catalog' | 'trustedProxies'>,
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
function revisionIn(ctx: AppContext): number | undefined {
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
