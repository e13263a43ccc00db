import { policyRevision } from '../core/authorize.ts';
import type { EvaluateCall } from '../generated/types.ts';
import { createPdp, type Pdp } from '../policy/pdp.ts';
import { accessOverview, accessReport } from '../workbench/access.ts';
import { accessDiff } from '../workbench/diff.ts';
import { explain, readCall } from '../workbench/explain.ts';
import { type Holder, holdersOf } from '../workbench/holders.ts';
import { lintedMappings, lintWorld } from '../workbench/lint.ts';
import { activeMappings, readWorld, type World } from '../workbench/world.ts';
import { showAccess, showDiff, showOverview } from './access-output.ts';
import { showExplanation, showLint } from './explain-output.ts';
import { type Sources, withDraftFile, withJudges, worldSources } from './policy-world.ts';
import { keyId } from './references.ts';
import { UsageError } from './usage-error.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
}

export type AccessOptions = CommonOptions & { readonly all?: true; readonly denied?: true };
export type DiffOptions = CommonOptions & { readonly draft?: string; readonly failOn?: 'new-access' };
export type LintOptions = CommonOptions & { readonly strict?: true };
export type ExplainOptions = CommonOptions & EvaluateCall & { readonly key: string };

/** `portcullis access`. */
export async function runAccess(
  env: Environment,
  reference: string | undefined,
  options: AccessOptions,
): Promise<void> {
  if ((reference === undefined) !== (options.all === true)) {
    throw new UsageError('Name a key or a member, or say --all.');
  }
  if (reference === undefined) {
    const world = worldSources(env, options.org).current();
    const overview = await withJudges(activeMappings(world), (judges, progress) =>
      accessOverview(judges, holdersOf(world), progress),
    );
    showOverview(overview, options);
    return;
  }
  const { world, holder } = await inWorkspace(env, 'read', options.org, (workspace) => find(workspace, reference));
  const report = withPdp((pdp) => accessReport(pdp, activeMappings(world), holder, revisionOf(world, pdp)));
  showAccess(report, options);
}

/** `portcullis policy diff`. */
export async function runDiff(
  env: Environment,
  before: string | undefined,
  after: string | undefined,
  options: DiffOptions,
): Promise<void> {
  if ((before === undefined) === (options.draft === undefined)) {
    throw new UsageError('Name a source to compare with, or a --draft.');
  }
  const [was, is] = comparedWorlds(worldSources(env, options.org), before, after, options.draft);
  const diff = await withJudges(activeMappings(was), (judges, progress) => accessDiff(judges, was, is, progress));
  showDiff(diff, options);
  if (options.failOn === 'new-access' && diff.gained > 0) throw new Error(`${diff.gained} newly permitted.`);
}

function comparedWorlds(
  sources: Sources,
  before: string | undefined,
  after: string | undefined,
  draft: string | undefined,
): [World, World] {
  const at = (source: string | undefined): World => (source === undefined ? sources.current() : sources.at(source));
  const was = at(before);
  return [was, draft === undefined ? at(after) : withDraftFile(was, draft)];
}

/** `portcullis policy lint`. */
export async function runLint(env: Environment, source: string | undefined, options: LintOptions): Promise<void> {
  const sources = worldSources(env, options.org);
  const world = source === undefined ? sources.current() : sources.at(source);
  const report = await withJudges(lintedMappings(world), (judges, progress) => lintWorld(world, judges, progress));
  showLint(report, options);
  if (options.strict && report.findings.length > 0) throw new Error(`${report.findings.length} findings.`);
}

/** `portcullis policy explain`. */
export async function runExplain(env: Environment, { key, org, json, ...call }: ExplainOptions): Promise<void> {
  const { world, holder } = await inWorkspace(env, 'read', org, (workspace) => find(workspace, key, 'key'));
  const asked = readCall(world, call);
  const explanation = withPdp((pdp) => explain(pdp, world, holder.subjects, asked, revisionOf(world, pdp)));
  showExplanation(explanation, json ? { json } : {});
}

function find(workspace: Workspace, reference: string, scope?: 'key'): { world: World; holder: Holder } {
  const world = readWorld(workspace.db, workspace.catalog(), workspace.actor.organizationId);
  const isMember = scope === undefined && (reference.includes('@') || reference.startsWith('mem_'));
  const id = isMember ? reference : keyId(workspace, reference);
  const holder = holdersOf(world).find((each) => each.id === id || (isMember && each.name === id.toLowerCase()));
  if (holder === undefined) throw new Error(`There is no ${isMember ? 'member' : 'key'} ${reference}.`);
  return { world, holder };
}

function withPdp<T>(work: (pdp: Pdp) => T): T {
  const pdp = createPdp();
  try {
    return work(pdp);
  } finally {
    pdp.close();
  }
}

function revisionOf({ organizations }: World, { bundleDigest }: Pdp): string {
  const [organization] = organizations.values();
  return policyRevision(bundleDigest, organization?.ruleRevision ?? 0);
}
