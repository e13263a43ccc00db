import { type Command, Option } from 'commander';
import type { PolicyApplyOptions, PolicyPlanOptions } from '../../run/run-policy-plan.ts';
import type { PolicyPullOptions } from '../../run/run-policy-pull.ts';
import type { Environment } from '../../run/workspace.ts';
import { common, wide } from '../../terminal/common-options.ts';

const FOLDER = 'a folder of YAML files, or one file';

/** Loaded only by a command that is run, with the policy engine: the others start in a fraction of the time. */
const plans = () => import('../../run/run-policy-plan.ts');

const planned = (command: Command): Command =>
  common(command.argument('<folder>', FOLDER))
    .option('--prune', 'also remove the rules that no folder states, of everyone in the organization')
    .addOption(
      new Option('--fail-on <what>', 'exit with 1 when anything is newly permitted, credential or not').choices([
        'new-access',
      ]),
    )
    .option('--without-credential', 'also list mappings that cannot be called, for lack of a credential');

const PLAN_HELP = `
A rule of the folder that has its name is the same rule, whatever else changes. Rules that the folder no longer states are
removed; rules that no folder states stay, unless they do the same as a new one of the folder, which then adopts them.

Exit code: 0 planned, 1 something is newly permitted or the plan cannot be made, 2 wrong usage or a folder that makes no sense.

Examples:
  $ portcullis policy plan policy/rules
  $ portcullis policy plan policy/rules --fail-on new-access --out plan.json`;

const APPLY_HELP = `
With --plan nothing is changed unless the rules of the database, and those of the folder, are the ones that were planned.
Applied twice, the second apply changes nothing.

Examples:
  $ portcullis policy apply policy/rules
  $ portcullis policy apply policy/rules --plan plan.json --revision "$(git rev-parse HEAD)"`;

const PULL_HELP = `
The folder states what is live, but for rules of other folders, and marks nothing: the first apply adopts the rules as they
are. A rule that no folder states is named after its description, or else its type.`;

/** `portcullis policy plan|apply|pull|document`: rules that a folder in git states. */
export function folderCommands(policy: Command, env: Environment): void {
  wide(planned(policy.command('plan')))
    .description('Print what an apply of a policy folder would change: the rules, and exactly which access.')
    .option('--out <file>', 'write the plan as JSON too, for apply --plan')
    .addHelpText('after', PLAN_HELP)
    .action(async (folder: string, options: PolicyPlanOptions) => {
      await (await plans()).runPolicyPlan(env, folder, options);
    });

  planned(policy.command('apply'))
    .description('Make the rules what a policy folder states, all of it or nothing.')
    .addOption(new Option('--plan <file>', 'do what this plan says, or nothing').conflicts('prune'))
    .option('--revision <revision>', "the folder's revision in git, for the audit log")
    .addHelpText('after', APPLY_HELP)
    .action(async (folder: string, options: PolicyApplyOptions) => {
      await (await plans()).runPolicyApply(env, folder, options);
    });

  policy
    .command('pull')
    .argument('<folder>', 'it may be missing')
    .description('Write the rules that are live as a policy folder.')
    .option('--org <organization>', 'the organization, where there are several')
    .option('--source <name>', 'what the folder calls itself; default: as it does, else policy')
    .option('--force', 'overwrite files that differ')
    .addHelpText('after', PULL_HELP)
    .action(async (folder: string, options: PolicyPullOptions) => {
      const { runPolicyPull } = await import('../../run/run-policy-pull.ts');
      await runPolicyPull(env, folder, options);
    });

  policy
    .command('document')
    .argument('<folder>', FOLDER)
    .description('Print a policy folder as one JSON document, as the master API takes it. Needs no database.')
    .action(async (folder: string) => {
      const [{ folderAt }, { printJson }] = await Promise.all([
        import('../../run/policy-folder-files.ts'),
        import('../../terminal/output.ts'),
      ]);
      printJson(folderAt(folder).document);
    });
}
