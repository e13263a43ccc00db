import { policyRevision } from '../../core/authorize.ts';
import { checkContent } from '../../domain/check-shape.ts';
import { ApiError } from '../../domain/errors.ts';
import { SANDBOX } from '../../domain/provider.ts';
import type { AccessChanges, AccessDiff, EvaluateCall, FixtureFacts, LintFinding } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { counted } from '../../lib/text.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { accessOverview, accessReport } from '../../workbench/analysis/access.ts';
import { accessDiff } from '../../workbench/analysis/diff.ts';
import { explain, readCall } from '../../workbench/analysis/explain.ts';
import { lintedMappings, lintWorld } from '../../workbench/analysis/lint.ts';
import type { ReportOptions } from '../../workbench/world/candidates.ts';
import { type Holder, holdersOf } from '../../workbench/world/holders.ts';
import { readWorld, type World } from '../../workbench/world/world.ts';
import { keyId } from '../record-references.ts';
import { print, warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { checkIsKnown, type Environment, inWorkspace, type Served, type Workspace } from '../workspace.ts';
import { showAccess, showExplanation, showLint, showOverview } from './access-output.ts';
import { type DiffFormat, kindsIn, showDiff } from './diff-output.ts';
import { inParts, policyOf, type Sources, withDraftFile, withJudges, worldSources } from './policy-world.ts';

interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
  readonly against?: 'env';
}

export type AccessOptions = CommonOptions & Partial<ReportOptions> & { readonly all?: true; readonly denied?: true };
export type DiffOptions = CommonOptions &
  Partial<ReportOptions> &
  Pick<DiffFormat, 'full' | 'markdown'> & { readonly draft?: string; readonly failOn?: 'new-access' };
export type LintOptions = CommonOptions & { readonly strict?: true };
export type ExplainOptions = CommonOptions &
  Omit<EvaluateCall, 'facts'> & {
    readonly key: string;
    /** JSON text. */
    readonly facts?: string;
  };

/** `portcullis access`. */
export async function runAccess(
  env: Environment,
  reference: string | undefined,
  options: AccessOptions,
): Promise<void> {
  if ((reference === undefined) !== (options.all === true)) {
    throw new UsageError('Name a key or a member, or pass --all or --model.');
  }
  if (reference === undefined) {
    const sources = worldSources(env, options.org, options.against);
    const world = sources.current();
    const overviews = await inParts([world], (mappings, within) =>
      withJudges(env, mappings, (judges, progress) =>
        accessOverview(judges, within(world), shownBy(options), progress),
      ),
    );
    showOverview({ holders: overviews.flatMap(({ holders }) => holders) }, options);
    showServed(sources.served, options);
    return;
  }
  const { world, served, holder } = await inWorkspace(env, 'read', options.org, (workspace) =>
    find(workspace, reference, options.against),
  );
  const report = withPdp(env, (pdp) => accessReport(pdp, world, holder, revisionOf(world, pdp), shownBy(options)));
  showAccess(report, options);
  showServed(served, options);
}

function showServed({ text }: Served, { json }: CommonOptions): void {
  if (!json) print(text);
}

const shownBy = ({ withoutCredential = false }: Partial<ReportOptions>): ReportOptions => ({ withoutCredential });

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
  const sources = worldSources(env, options.org, options.against);
  const { served } = sources;
  const gated = options.failOn === 'new-access';
  if (gated) checkIsKnown(served);
  const { was, is, warnings } = comparedWorlds(sources, before, after, options.draft);
  // A gate without any known credential must not take models that the rules permit for out of reach.
  const failsSafe =
    gated && !options.withoutCredential && [...served.installation.servedProviders].every((id) => id === SANDBOX);
  const shown: ReportOptions = { withoutCredential: failsSafe || options.withoutCredential === true };
  const diffs = await inParts([was, is], (mappings, within) =>
    withJudges(env, mappings, (judges, progress) => accessDiff(judges, within(was), within(is), shown, progress)),
  );
  const diff = { ...allOf(diffs), warnings: [...warnings] };
  showDiff(diff, { ...options, ...shown }, kindsIn(was, is));
  showServed(served, options);
  if (failsSafe) warn(NO_CREDENTIALS);
  const gained = diff.gained + (shown.withoutCredential ? diff.withoutCredential.gained : 0);
  if (gated && gained > 0) throw new Error(`${gained} newly permitted.`);
}

const NO_CREDENTIALS =
  'note: the operator has set no provider credential, so --fail-on counts everything that the rules permit, callable or not.';

/** Joins the differences of several parts of the organizations. */
function allOf(diffs: readonly AccessDiff[]): AccessDiff {
  return {
    ...changesOf(diffs),
    ifEnforced: changesOf(diffs.map(({ ifEnforced }) => ifEnforced)),
    changedRules: diffs.reduce((sum, { changedRules }) => sum + changedRules, 0),
    warnings: diffs.flatMap(({ warnings }) => warnings),
  };
}

function changesOf(parts: readonly AccessChanges[]): AccessChanges {
  const sumOf = (count: (part: AccessChanges) => number): number => parts.reduce((sum, part) => sum + count(part), 0);
  return {
    gained: sumOf(({ gained }) => gained),
    lost: sumOf(({ lost }) => lost),
    withoutCredential: {
      gained: sumOf(({ withoutCredential }) => withoutCredential.gained),
      lost: sumOf(({ withoutCredential }) => withoutCredential.lost),
    },
    flips: parts.flatMap(({ flips }) => flips),
  };
}

interface Compared {
  readonly was: World;
  readonly is: World;
  /** Warnings of a draft. */
  readonly warnings: readonly string[];
}

function comparedWorlds(
  sources: Sources,
  before: string | undefined,
  after: string | undefined,
  draft: string | undefined,
): Compared {
  const at = (source: string | undefined): World => (source === undefined ? sources.current() : sources.at(source));
  const was = at(before);
  if (draft === undefined) return { was, is: at(after), warnings: [] };
  const { world, warnings } = withDraftFile(was, draft);
  return { was, is: world, warnings };
}

/** `portcullis policy lint`. */
export async function runLint(env: Environment, source: string | undefined, options: LintOptions): Promise<void> {
  const sources = worldSources(env, options.org, options.against);
  const world = source === undefined ? sources.current() : sources.at(source);
  const reports = await inParts([world], (mappings, within) =>
    withJudges(env, lintedMappings(mappings), (judges, progress) => lintWorld(within(world), judges, progress)),
  );
  const found = reports.flatMap((report) => report.findings);
  const findings = [...found.filter(isFirst), ...found.filter((each) => !isFirst(each))];
  showLint({ findings }, options);
  if (options.strict && findings.length > 0) throw new Error(`${counted(findings.length, 'finding')}.`);
}

const isFirst = ({ code }: LintFinding): boolean => code === 'reaches-nothing';

/** `portcullis policy explain`. */
export async function runExplain(
  env: Environment,
  { key, org, json, against, facts, ...request }: ExplainOptions,
): Promise<void> {
  const call = facts === undefined ? request : { ...request, facts: readFacts(facts) };
  const { world, stored, now } = await inWorkspace(env, 'read', org, (workspace) => {
    const there = worldIn(workspace, against);
    return { world: there, stored: there.keys.get(keyId(workspace, key)), now: workspace.now };
  });
  if (stored === undefined) throw new Error(`There is no key ${key}.`);
  const asked = readCall(world, stored, call, now);
  const explanation = withPdp(env, (pdp) => explain(pdp, world, stored, asked, revisionOf(world, pdp)));
  showExplanation(explanation, json ? { json } : {});
}

/** @throws UsageError */
function readFacts(text: string): FixtureFacts {
  try {
    return checkContent(validator('FixtureFacts'), JSON.parse(text));
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(`--facts: ${error.message}`, { cause: error });
    throw new UsageError(`--facts is not JSON: ${text}`, { cause: error });
  }
}

const worldIn = ({ db, served, actor }: Workspace, against?: 'env'): World =>
  readWorld(db, served(against).installation, actor.organizationId);

function find(
  workspace: Workspace,
  reference: string,
  against?: 'env',
): { readonly world: World; readonly served: Served; readonly holder: Holder } {
  const world = worldIn(workspace, against);
  const isMember = reference.includes('@') || reference.startsWith('mem_');
  const id = isMember ? reference : keyId(workspace, reference);
  const holder = holdersOf(world).find((each) => each.id === id || (isMember && each.name === id.toLowerCase()));
  if (holder === undefined) throw new Error(`There is no ${isMember ? 'member' : 'key'} ${reference}.`);
  return { world, served: workspace.served(against), holder };
}

function withPdp<T>(env: Environment, work: (pdp: Pdp) => T): T {
  const pdp = createPdp(policyOf(env));
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
