import { writeFileSync } from 'node:fs';
import { appliedView, applyFolder, newlyPermitted, planView } from '../../admin/folder/apply-folder.ts';
import { FolderFaults, type FolderPlan, type PlanOptions, readFolderPlan } from '../../admin/folder/plan-folder.ts';
import { writeJudged } from '../../admin/rules/judged-change.ts';
import type { AccessDiff, PolicyPlan } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { accessDiff } from '../../workbench/analysis/diff.ts';
import { replacementsOf, withRule } from '../../workbench/analysis/drafts.ts';
import { placeText } from '../../workbench/fixtures/fixture-reports.ts';
import type { ReadFolder } from '../../workbench/folder/policy-folder.ts';
import { organizationSets } from '../../workbench/world/candidates.ts';
import { readWorld, type World } from '../../workbench/world/world.ts';
import { checkWritable, readJsonFile } from '../terminal/arguments.ts';
import { print, warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { checkIsKnown, type Environment, inWorkspace, ruleWriteOf, type Served, type Workspace } from '../workspace.ts';
import { type KindOf, kindsIn, markdownText } from './diff-output.ts';
import { folderAt, refusedFolder } from './folder-pull.ts';
import { showApplied, showPlan } from './plan-output.ts';
import { type DraftedWorld, withJudges } from './policy-world.ts';

const validatePolicyPlan = validator('PolicyPlan');

interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
  readonly withoutCredential?: true;
  readonly full?: true;
  readonly markdown?: true;
  readonly prune?: true;
  readonly failOn?: 'new-access';
  readonly against?: 'env';
}

export type PolicyPlanOptions = CommonOptions & { readonly out?: string };
export type PlanFileOptions = Pick<CommonOptions, 'full' | 'markdown'>;
export type PolicyApplyOptions = CommonOptions & { readonly plan?: string; readonly revision?: string };

/** A plan with the world that it was made for. */
interface PlannedWorld {
  readonly plan: FolderPlan;
  readonly world: World;
  readonly served: Served;
  readonly failOnNewAccess: boolean;
}

/** `portcullis policy plan`. */
export async function runPolicyPlan(env: Environment, place: string, options: PolicyPlanOptions): Promise<void> {
  const folder = folderAt(place);
  if (options.out !== undefined) checkWritable(options.out);
  const planned = await plan(env, folder, options, { prune: options.prune === true });
  const access = await judge(env, planned, options);
  const shown = planView(planned.plan, access);
  if (options.out !== undefined) writeFileSync(options.out, `${JSON.stringify(shown, null, 2)}\n`);
  show(folder, planned, shown, options);
  refuseNewAccess(access, options);
}

/** `portcullis policy apply`. */
export async function runPolicyApply(env: Environment, place: string, options: PolicyApplyOptions): Promise<void> {
  const folder = folderAt(place);
  const reviewed = options.plan === undefined ? undefined : readPlan(options.plan);
  const prune = options.prune === true || reviewed?.prune === true;
  await writeJudged({
    plan: () => plan(env, folder, options, { prune, ...(reviewed === undefined ? {} : { reviewed }) }),
    judge: (planned: PlannedWorld) => judge(env, planned, options),
    write: async (planned, access) => {
      if (options.failOn !== undefined && isWider(access)) {
        show(folder, planned, planView(planned.plan, access), options);
        refuseNewAccess(access, options);
      }
      const applied = await inWorkspace(env, 'write', options.org, ({ db, actor, now }) =>
        applyFolder(db, actor, planned.plan, { revision: options.revision, now }),
      );
      showApplied(appliedView(applied, access), options, reviewed !== undefined, kindsOf(planned));
      if (reviewed === undefined) showServed(planned, options);
      warnOf(folder, planned.plan, options);
    },
  });
}

/** On the rules as they are now. @throws UsageError after a line for each fault of the folder */
const plan = async (
  env: Environment,
  folder: ReadFolder,
  { org, failOn, against }: CommonOptions,
  options: PlanOptions,
): Promise<PlannedWorld> => {
  const planned = await inWorkspace(env, 'read', org, (workspace) => planIn(workspace, folder, options, against));
  if (failOn !== undefined) checkIsKnown(planned.served);
  return { ...planned, failOnNewAccess: failOn !== undefined };
};

function planIn(
  workspace: Workspace,
  folder: ReadFolder,
  options: PlanOptions,
  against?: 'env',
): Omit<PlannedWorld, 'failOnNewAccess'> {
  const { db, actor } = workspace;
  const served = workspace.served(against);
  try {
    return db.snapshot(() => ({
      plan: readFolderPlan(db, actor, folder.document, options, ruleWriteOf(workspace, against)),
      world: readWorld(db, served.installation, actor.organizationId),
      served,
    }));
  } catch (error) {
    if (!(error instanceof FolderFaults)) throw error;
    throw refusedFolder(error.faults.map(({ pointer, text }) => ({ place: folder.placeOf(pointer), message: text })));
  }
}

/** The world as it would be after `policy apply`. */
const worldAfter = ({ plan, world }: Pick<PlannedWorld, 'plan' | 'world'>): World =>
  replacementsOf(planView(plan, null).changes).reduce(withRule, world);

/** The world with the rules that a policy folder states, and the warnings of its plan. @throws UsageError as `policy plan` */
export function withPolicyFolder(workspace: Workspace, place: string): DraftedWorld {
  const folder = folderAt(place);
  const planned = planIn(workspace, folder, { prune: false });
  const warnings = planned.plan.warnings.map(({ pointer, text }) => warningText(folder, pointer, text));
  return { world: worldAfter(planned), warnings };
}

const warningText = (folder: ReadFolder, pointer: string, text: string): string =>
  `${placeText(folder.placeOf(pointer), process.cwd())}: ${text}`;

async function judge(env: Environment, { plan, world }: PlannedWorld, options: CommonOptions): Promise<AccessDiff> {
  const withoutCredential = options.withoutCredential === true;
  const after = worldAfter({ plan, world });
  const [part] = organizationSets([world]);
  return withJudges(env, part?.mappings ?? [], (judges, progress) =>
    accessDiff(judges, world, after, { withoutCredential }, progress),
  );
}

function show(folder: ReadFolder, planned: PlannedWorld, shown: PolicyPlan, options: CommonOptions): void {
  showPlan(shown, options, kindsOf(planned));
  showServed(planned, options);
  warnOf(folder, planned.plan, options);
}

/** A plan without a change has judged nothing. */
function showServed({ plan, served }: PlannedWorld, { json, markdown }: CommonOptions): void {
  if (json || plan.changes.length === 0) return;
  print(markdown ? `\n${markdownText(served.text)}` : served.text);
}

const kindsOf = (planned: PlannedWorld): KindOf => kindsIn(planned.world, worldAfter(planned));

function warnOf(folder: ReadFolder, { warnings }: FolderPlan, { json, markdown }: CommonOptions): void {
  if (json || markdown) return;
  for (const { pointer, text } of warnings) warn(`warning: ${warningText(folder, pointer, text)}`);
}

const isWider = (access: AccessDiff | null): boolean => access === null || newlyPermitted(access) > 0;

function refuseNewAccess(access: AccessDiff | null, { failOn }: CommonOptions): void {
  if (failOn === undefined || access === null) return;
  const count = newlyPermitted(access);
  const uncallable = access.withoutCredential.gained;
  const rest = uncallable === 0 ? '' : `, ${uncallable} of them without a credential to call them`;
  if (count > 0) throw new Error(`${count} newly permitted${rest}.`);
}

/** `portcullis policy show`: a plan that was made before. */
export function showPlanFile(file: string, options: PlanFileOptions): void {
  const plan = readPlan(file);
  showPlan(plan, options);
  if (options.markdown) return;
  for (const warning of plan.warnings) warn(`warning: ${warning}`);
}

/** Reads a plan that `policy plan --out` wrote, or the master API answered. */
function readPlan(file: string): PolicyPlan {
  const content = readJsonFile(file);
  if (validatePolicyPlan(content)) return content;
  throw new UsageError(`${file} is not what \`portcullis policy plan --out\` writes.`);
}
