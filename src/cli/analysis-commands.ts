import { type Command, Option } from 'commander';
import { policyRevision } from '../core/authorize.ts';
import type { AccessDiff, AccessReport, EvaluateCall } from '../generated/types.ts';
import { createPdp, type Pdp } from '../policy/pdp.ts';
import { accessOverview, accessReport } from '../workbench/access.ts';
import { accessDiff } from '../workbench/diff.ts';
import { explain, readCall } from '../workbench/explain.ts';
import { type Holder, holdersOf } from '../workbench/holders.ts';
import { lintedMappings, lintWorld } from '../workbench/lint.ts';
import { activeMappings, readWorld, type World } from '../workbench/world.ts';
import { showAccess, showDiff, showOverview } from './access-output.ts';
import { showExplanation, showLint } from './explain-output.ts';
import { withDraftFile, withJudges, worldSources } from './policy-world.ts';
import { keyId } from './references.ts';
import { UsageError } from './usage-error.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
}

type AccessOptions = CommonOptions & { readonly all?: true; readonly denied?: true };

interface DiffOptions extends CommonOptions {
  readonly draft?: string;
  readonly failOn?: 'new-access';
}

const common = (command: Command): Command =>
  command.option('--org <id>', 'the organization, where there are several').option('--json', 'print JSON');

/** `portcullis access …` and the analyses under `portcullis policy …`. */
export function analysisCommands(program: Command, policy: Command, env: Environment): void {
  accessCommand(program, env);
  diffCommand(policy, env);
  lintCommand(policy, env);
  explainCommand(policy, env);
}

function accessCommand(program: Command, env: Environment): void {
  common(program.command('access').argument('[key|member]', 'a key, or a membership id or e-mail'))
    .description('Print everything that a key or member reaches, from where, and the rules that decide it.')
    .option('--denied', 'print what is denied too')
    .option('--all', 'print how much every key and member reaches')
    .action(async (reference: string | undefined, options: AccessOptions) => {
      if ((reference === undefined) !== (options.all === true)) {
        throw new UsageError('Name a key or a member, or say --all.');
      }
      if (reference !== undefined) {
        const { world, holder } = await inWorkspace(env, 'read', options.org, (workspace) =>
          find(workspace, reference),
        );
        showAccess(reportOn(world, holder), options);
        return;
      }
      const world = worldSources(env, options.org).current();
      showOverview(
        await withJudges(activeMappings(world), (judges, progress) =>
          accessOverview(judges, holdersOf(world), progress),
        ),
        options,
      );
    });
}

function find(workspace: Workspace, reference: string, scope?: 'key'): { world: World; holder: Holder } {
  const world = readWorld(workspace.db, workspace.catalog(), workspace.actor.organizationId);
  const isMember = scope === undefined && (reference.includes('@') || reference.startsWith('mem_'));
  const id = isMember ? reference : keyId(workspace, reference);
  const holder = holdersOf(world).find((each) => each.id === id || (isMember && each.name === id.toLowerCase()));
  if (holder === undefined) throw new Error(`There is no ${isMember ? 'member' : 'key'} ${reference}.`);
  return { world, holder };
}

const reportOn = (world: World, holder: Holder): AccessReport =>
  withPdp((pdp) => accessReport(pdp, activeMappings(world), holder, revisionOf(world, pdp)));

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

const DIFF_HELP = `
A source is the DATA_DIR of a database or a file that \`portcullis policy export\` wrote; the second one is the current
database unless it is named. Both are judged by the catalogue and the policy of this installation.

Examples:
  $ portcullis policy diff before.json
  $ portcullis policy diff --draft draft.yaml --fail-on new-access`;

function diffCommand(policy: Command, env: Environment): void {
  common(policy.command('diff').argument('[before]', 'a source').argument('[after]', 'a source'))
    .description('Print exactly which access differs between two sets of rules, and the rules responsible.')
    .option('--draft <file>', 'compare the current database with itself after these changes of rules, YAML or JSON')
    .addOption(new Option('--fail-on <what>', 'exit with 1 when anything is newly permitted').choices(['new-access']))
    .addHelpText('after', DIFF_HELP)
    .action(async (before: string | undefined, after: string | undefined, options: DiffOptions) => {
      const sources = worldSources(env, options.org);
      if ((before === undefined) === (options.draft === undefined)) {
        throw new UsageError('Name a source to compare with, or a --draft.');
      }
      const was = before === undefined ? sources.current() : sources.at(before);
      const is =
        options.draft !== undefined
          ? withDraftFile(was, options.draft)
          : after === undefined
            ? sources.current()
            : sources.at(after);
      const diff = await withJudges(activeMappings(was), (judges, progress) => accessDiff(judges, was, is, progress));
      showDiff(diff, options);
      checkNothingNew(diff, options);
    });
}

function checkNothingNew({ gained }: AccessDiff, { failOn }: DiffOptions): void {
  if (failOn === 'new-access' && gained > 0) throw new Error(`${gained} newly permitted.`);
}

function lintCommand(policy: Command, env: Environment): void {
  common(policy.command('lint').argument('[source]', 'a source as for diff; default: the current database'))
    .description('Name rules that are dead, shadowed or match nothing, and keys open to every future model.')
    .option('--strict', 'exit with 1 when anything is found')
    .action(async (source: string | undefined, options: CommonOptions & { readonly strict?: true }) => {
      const sources = worldSources(env, options.org);
      const world = source === undefined ? sources.current() : sources.at(source);
      const report = await withJudges(lintedMappings(world), (judges, progress) => lintWorld(world, judges, progress));
      showLint(report, options);
      if (options.strict && report.findings.length > 0) throw new Error(`${report.findings.length} findings.`);
    });
}

type ExplainOptions = CommonOptions & EvaluateCall & { readonly key: string };

function explainCommand(policy: Command, env: Environment): void {
  common(policy.command('explain'))
    .description('Say what becomes of one request, by which rules, and what would change it.')
    .requiredOption('--key <key>', 'its id, masked token or description')
    .requiredOption('--model <model>', 'as a request names it')
    .option('--provider <provider>', 'at this provider only')
    .option('--address <address>', 'client address; default: unknown')
    .addOption(
      new Option('--action <action>', 'default: what the model serves').choices(['chat', 'moderation', 'image']),
    )
    .action(async ({ key, org, json, ...call }: ExplainOptions) => {
      const { world, holder } = await inWorkspace(env, 'read', org, (workspace) => find(workspace, key, 'key'));
      const asked = readCall(world, call);
      const explanation = withPdp((pdp) => explain(pdp, world, holder.subjects, asked, revisionOf(world, pdp)));
      showExplanation(explanation, json ? { json } : {});
    });
}
