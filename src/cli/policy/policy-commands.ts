import { type Command, InvalidArgumentError, Option } from 'commander';
import { againstOption, common, showingAccess, wide } from '../terminal/options.ts';
import type { Environment } from '../workspace.ts';
import { analysisCommands } from './analysis-commands.ts';
import type { BuildCommandOptions } from './build-work.ts';
import type { BundleOptions } from './bundle-work.ts';
import type { ExportOptions } from './export-work.ts';
import type { PolicyPullOptions } from './folder-pull.ts';
import type { PlanFileOptions, PolicyApplyOptions, PolicyPlanOptions } from './folder-work.ts';
import type { DecisionFixtureOptions, GenerateOptions } from './generate-work.ts';
import type { PolicyTestOptions } from './policy-test-work.ts';

/** `portcullis policy …`. */
export function policyCommands(program: Command, env: Environment): void {
  const policy = program.command('policy').description('Test and analyse what the rules permit.');
  policyTestCommand(policy, env);
  analysisCommands(program, policy, env);
  folderCommands(policy, env);
  generateCommand(policy, env);
  fixtureCommand(policy, env);
  exportCommand(policy, env);
  bundleCommands(policy, env);
}

const BUILD_EXAMPLES = `
Examples:
  $ portcullis policy build team-policy -o bundle.tar.gz --revision 2026-11-25
  $ portcullis policy build team-policy -o bundle.tar.gz --signing-key private.pem

The folder holds Rego of the package \`custom\`, data below \`custom_data\`, and fixtures in \`fixtures\`. It needs \`opa\` on the
PATH; the gateways that follow the bundle do not.`;

/** @throws InvalidArgumentError for what no signature can state */
function bundleNumber(text: string): number {
  const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : 0;
  if (number < 1 || !Number.isSafeInteger(number)) {
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}.`);
  }
  return number;
}

/** `portcullis policy build` and `portcullis policy bundle …`. */
function bundleCommands(policy: Command, env: Environment): void {
  policy
    .command('build <folder>')
    .description("Compile the gateway's Rego with a team's own into a bundle, and try it. It needs `opa` on the PATH.")
    .requiredOption('-o, --output <file>', 'where the bundle is written')
    .option('--revision <text>', 'what the bundle is called (default: the time)')
    .option('--signing-key <file>', 'private key in PEM form: the bundle is signed')
    .option('--signing-alg <name>', 'of the signature, such as ES256 (default: RS256)')
    .option(
      '--number <n>',
      'of a signed bundle: gateways refuse a lower one afterwards (default: the seconds since 1970)',
      bundleNumber,
    )
    .option('--json', 'print JSON')
    .addHelpText('after', BUILD_EXAMPLES)
    .action(async (folder: string, options: BuildCommandOptions) => {
      const { buildAndTry } = await import('./build-work.ts');
      await buildAndTry(folder, options);
    });
  const bundle = policy
    .command('bundle')
    .description('Look at the policy bundle in force, try another, go back to the one before.');
  bundle
    .command('status')
    .description('Show the policy in force, the one before, and the outcome of the last that were offered.')
    .option('--json', 'print JSON')
    .action(async (options: BundleOptions) => {
      const { showBundleStatus } = await import('./bundle-work.ts');
      showBundleStatus(env, options);
    });
  bundle
    .command('check <file>')
    .description('Try a bundle as the server would, with its settings, and say why it would be refused.')
    .option('--json', 'print JSON')
    .action(async (file: string, options: BundleOptions) => {
      const { checkBundle } = await import('./bundle-work.ts');
      await checkBundle(env, file, options);
    });
  bundle
    .command('rollback')
    .description(
      'Put the bundle before back in force; a running server follows within 2 seconds. The one that is left is not activated again until the source has another one; a second rollback returns to it.',
    )
    .option('--json', 'print JSON')
    .action(async (options: BundleOptions) => {
      const { rollBackBundle } = await import('./bundle-work.ts');
      await rollBackBundle(env, options);
    });
}

const TEST_EXAMPLES = `
Examples:
  $ portcullis policy test
  $ portcullis policy test fixtures/ci.yaml --filter office
  $ portcullis policy test --coverage --kinds-threshold 0
  $ portcullis policy test fixtures --folder rules
  $ portcullis policy test fixtures --folder rules --mutate
  $ portcullis policy test fixtures --database data --coverage --kinds-threshold 0

Exit code: 0 all passed, 1 a request failed, or too little is covered or noticed, 2 wrong usage or a fixture that makes no sense.`;

function parsePercent(text: string): number {
  const percent = Number(text);
  if (!/^[0-9]{1,3}(\.[0-9]+)?$/.test(text) || percent > 100) {
    throw new InvalidArgumentError('It must be a percentage from 0 to 100.');
  }
  return percent;
}

/** `portcullis policy test`. */
function policyTestCommand(policy: Command, env: Environment): void {
  policy
    .command('test')
    .description(
      'Run policy fixtures on the compiled policy, against their own rules, those of a policy folder or those of a database.',
    )
    .argument('[paths...]', 'fixture files and folders (default: test/policy/cases or policy/cases, here)')
    .option('--filter <text>', 'only fixtures whose name holds this text')
    .addOption(new Option('--json', 'print JSON').conflicts(['junit', 'watch']))
    .addOption(new Option('--junit', 'print JUnit XML').conflicts('watch'))
    .option('--coverage', 'every rule, and every rule type in every scope, must decide a request')
    .option('--threshold <percent>', 'how many of the rules must (default: 100)', parsePercent)
    .option('--kinds-threshold <percent>', 'how many rule types by scope must (default: as --threshold)', parsePercent)
    .option('--mutate', 'change each rule one value at a time: a fixture must notice each change')
    .option('--mutants-threshold <percent>', 'how many of the changes must be noticed (default: 100)', parsePercent)
    .option('--watch', 'run again whenever a file changes, until Ctrl-C')
    .addOption(new Option('--database <folder>', 'test the rules in this DATA_DIR').conflicts(['rules', 'folder']))
    .addOption(new Option('--rules <file>', 'test the rules of this exported document').conflicts('folder'))
    .option('--folder <folder>', 'test the rules that this policy folder states; needs no database')
    .option('--bundle <file>', 'test the policy of this bundle (default: the policy in force)')
    .option('--org <organization>', 'the organization, where the database has several')
    .addHelpText('after', TEST_EXAMPLES)
    .action(async (paths: string[], options: PolicyTestOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runPolicyTest } = await import('./policy-test-work.ts');
      await runPolicyTest(env, paths, options);
    });
}

const FOLDER = 'a folder of YAML files, or one file';

/** Loaded only by a command that is run, with the policy engine: the others start in a fraction of the time. */
const plans = () => import('./folder-work.ts');

const planned = (command: Command): Command =>
  showingAccess(common(command.argument('<folder>', FOLDER)))
    .option('--prune', 'also remove the rules that no folder states, of everyone in the organization')
    .addOption(
      new Option('--fail-on <what>', 'exit with 1 when anything is newly permitted, credential or not').choices([
        'new-access',
      ]),
    )
    .option('--without-credential', 'also list mappings that cannot be called, for lack of a credential')
    .addOption(againstOption());

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

const SHOW_HELP = `
Example:
  $ portcullis policy show plan.json --markdown > comment.md`;

const PULL_HELP = `
The folder states what is live, but for rules of other folders, and marks nothing: the first apply adopts the rules as they
are. A rule that no folder states is named after its description, or else its type.`;

/** `portcullis policy plan|apply|pull|document`: rules that a folder in git states. */
function folderCommands(policy: Command, env: Environment): void {
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

  wide(showingAccess(policy.command('show').argument('<plan>', 'what plan --out wrote, or the master API answered')))
    .description('Print a plan that was made before, also as Markdown. Needs no database.')
    .addHelpText('after', SHOW_HELP)
    .action(async (file: string, options: PlanFileOptions) => {
      const { showPlanFile } = await plans();
      showPlanFile(file, options);
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
      const { runPolicyPull } = await import('./folder-pull.ts');
      await runPolicyPull(env, folder, options);
    });

  policy
    .command('document')
    .argument('<folder>', FOLDER)
    .description('Print a policy folder as one JSON document, as the master API takes it. Needs no database.')
    .action(async (folder: string) => {
      const [{ folderAt }, { printJson }] = await Promise.all([
        import('./folder-pull.ts'),
        import('../terminal/output.ts'),
      ]);
      printJson(folderAt(folder).document);
    });
}

const EXPORT_EXAMPLES = `
Examples:
  $ portcullis policy export -o exported
  $ portcullis policy export test/policy/cases --database -o exported.tar.gz

Then, with stock OPA:
  $ opa test --timeout 5m -b exported
  $ opa eval -b exported -i exported/inputs/0001.json data.gateway.authz.decision

world.json in it holds the rules as they were written: portcullis policy diff exported/world.json, policy test --rules.
Credentials and custom models are no rules, and are not exported.`;

/** `portcullis policy export`. */
function exportCommand(policy: Command, env: Environment): void {
  policy
    .command('export')
    .description('Write the policy as a bundle for stock OPA: Rego, the whole data document, inputs and decisions.')
    .argument('[paths...]', 'fixture files and folders: each request becomes an input with its decision')
    .addOption(
      new Option(
        '--database [folder]',
        'the rules of the database in this DATA_DIR (default without fixtures: the configured one)',
      ).conflicts('rules'),
    )
    .option('--rules <file>', 'the rules of an exported document')
    .requiredOption('-o, --output <path>', 'a new or empty folder, or a file that ends in .tar.gz')
    .option('--org <organization>', 'one organization only')
    .option('--json', 'print JSON')
    .addHelpText('after', EXPORT_EXAMPLES)
    .action(async (paths: string[], options: ExportOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runExport } = await import('./export-work.ts');
      await runExport(env, paths, options);
    });
}

const FIXTURE_HELP = `
The id is that of the decision, the call or the request (x-decision-id and x-request-id of the answer), or the one that the caller
sent as x-request-id. The fixture holds the candidates with the prices and tags of that time, and the rules that bind the key today.
A warning names the candidates that today's rules decide otherwise.

Examples:
  $ portcullis policy fixture nightly-7 > policy/cases/nightly.yaml
  $ portcullis policy test policy/cases/nightly.yaml --database data`;

/** `portcullis policy fixture`. */
function fixtureCommand(policy: Command, env: Environment): void {
  policy
    .command('fixture <id>')
    .description('Print a decision as a fixture that expects what was decided then.')
    .option('-o, --output <file>', 'write it to this file; a file that is there is replaced')
    .option('--org <organization>', 'the organization, where there are several')
    .addHelpText('after', FIXTURE_HELP)
    .action(async (id: string, options: DecisionFixtureOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runDecisionFixture } = await import('./generate-work.ts');
      await runDecisionFixture(env, id, options);
    });
}

const GENERATE_EXAMPLES = `
Examples:
  $ portcullis policy generate --database -o policy/cases/generated
  $ portcullis policy generate --key CI -o ci.yaml && portcullis policy test ci.yaml

Commit them, and a change of rules or policy that moves a border shows. Addresses at the ends of ranges and next to them, models by every name and those with neighbouring names, prices at a
cap and just above it. Models come from the catalogue and the organization's own ones, whether there is a credential or not:
a fixture holds them with their prices, so that it says the same wherever it is run.
Into a folder goes one file for each key, member and organization that has rules; other files in it stay as they are.`;

/** `portcullis policy generate`. */
function generateCommand(policy: Command, env: Environment): void {
  policy
    .command('generate')
    .description('Generate fixtures at the boundaries of existing rules. They expect what the policy decides today.')
    .addOption(
      new Option(
        '--key <key>',
        'rules of a key, its owner and the organization: its id, masked token or description',
      ).conflicts(['database', 'rules']),
    )
    .addOption(
      new Option(
        '--database [folder]',
        'all rules of the database in this DATA_DIR (default: the configured one)',
      ).conflicts('rules'),
    )
    .option('--rules <file>', 'all rules of this exported document')
    .requiredOption(
      '-o, --output <path>',
      'a file (.yaml) for all of them, or a folder; a file that is there is replaced',
    )
    .option('--org <organization>', 'the organization, where there are several')
    .option('--json', 'print JSON')
    .addHelpText('after', GENERATE_EXAMPLES)
    .action(async (options: GenerateOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runGenerate } = await import('./generate-work.ts');
      await runGenerate(env, options);
    });
}
