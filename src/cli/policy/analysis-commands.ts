import { type Command, InvalidArgumentError, Option } from 'commander';
import { againstOption, showingAccess, timeOptions, wide, wordList } from '../terminal/options.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import type { Environment } from '../workspace.ts';
import type { AccessOptions, DiffOptions, ExplainOptions, LintOptions } from './analysis-work.ts';
import type { ModelsOptions } from './models-work.ts';
import type { ReplayOptions } from './replay-work.ts';
import type { TightenOptions } from './tighten-work.ts';

const withAnalysisOptions = (command: Command): Command =>
  command.option('--org <organization>', 'the organization, where there are several').option('--json', 'print JSON');

const judging = (command: Command): Command => withAnalysisOptions(command).addOption(againstOption());

/** Loaded only by a command that is run, with the policy engine: the others start in a fraction of the time. */
const analyses = () => import('./analysis-work.ts');

/** `portcullis access …`, `portcullis replay` and the analyses under `portcullis policy …`. */
export function analysisCommands(program: Command, policy: Command, env: Environment): void {
  accessCommand(program, env);
  diffCommand(policy, env);
  lintCommand(policy, env);
  explainCommand(policy, env);
  tightenCommand(policy, env);
  replayCommand(program, env);
}

const CREDENTIALS_HELP = `
What is reached can be called now: its provider has a credential for the key's project, the operator's, as the last start of
the server has recorded it, or a provider key. The last line says what was judged by.`;

function accessCommand(program: Command, env: Environment): void {
  wide(judging(program.command('access').argument('[key|member]', 'a key, or a membership id or e-mail')))
    .description('Print everything that a key or member reaches, from where, and the rules that decide it.')
    .option('--denied', 'print what is denied too')
    .option('--all', 'print how much every key and member reaches')
    .option('--without-credential', 'also what the rules permit and cannot be called, for lack of a credential')
    .addOption(
      new Option('--model <model>', 'print every key and member that reaches this model, and from where').conflicts([
        'all',
        'denied',
      ]),
    )
    .addHelpText('after', CREDENTIALS_HELP)
    .action(async (reference: string | undefined, options: AccessOptions & { readonly model?: string }) => {
      if (options.model !== undefined) {
        if (reference !== undefined) throw new UsageError('Name a key or a member, or a --model.');
        const { runModelAccess } = await import('./model-access-work.ts');
        return runModelAccess(env, options.model, options);
      }
      await (await analyses()).runAccess(env, reference, options);
    });
}

const DIFF_HELP = `
A source is the DATA_DIR of a database, or what \`portcullis policy export\` wrote: its folder, or world.json in it. The
second one is the current database unless it is named. Both are judged by the catalogue and the policy of this
installation. Names that nothing has are warned of in a draft. A rule in mode report changes no access: what it would
change if it were enforced is printed apart.

What the server serves is what its last start on this DATA_DIR has recorded, and the last line says so. What cannot be called
for lack of a credential, the operator's or a provider key, is only counted; with --without-credential it is listed, and
--fail-on heeds it. If the operator has set no provider credential at all, --fail-on counts every permitted model, and prints
that. Where no server has started and this environment names no provider, --fail-on fails.
An exported document does not say what can be called: between two of them every mapping of the catalogue counts.

A draft entry adds a rule as the master API takes it (price caps in USD per million tokens, with its \`key\`, \`member\` or
\`organization: true\`), changes one (\`id\` plus new fields) or removes one (\`id\`, \`remove: true\`):

  rules:
    - key: CI
      ruleType: deny_models
      ruleValue: { models: ['openai/*'] }
    - id: rule_...
      remove: true

Examples:
  $ portcullis policy diff exported/world.json
  $ portcullis policy diff --draft draft.yaml --fail-on new-access`;

function diffCommand(policy: Command, env: Environment): void {
  showingAccess(judging(policy.command('diff').argument('[before]', 'a source').argument('[after]', 'a source')))
    .description('Print exactly which access differs between two sets of rules, and the rules responsible.')
    .option('--draft <file>', 'compare the current database with itself after these changes of rules, YAML or JSON')
    .addOption(new Option('--fail-on <what>', 'exit with 1 when anything is newly permitted').choices(['new-access']))
    .option('--without-credential', 'also mappings that cannot be called, for lack of a credential')
    .addHelpText('after', DIFF_HELP)
    .action(async (before: string | undefined, after: string | undefined, options: DiffOptions) => {
      await (await analyses()).runDiff(env, before, after, options);
    });
}

const LINT_HELP = `
Rules are judged by the whole catalogue and the custom models of their organization, whether there is a credential or not. An
exported document knows no custom models.`;

function lintCommand(policy: Command, env: Environment): void {
  judging(policy.command('lint').argument('[source]', 'a source as for diff; default: the current database'))
    .description(
      'Name what is wrong in the rules. Keys that reach nothing come first, then rules that are dead or shadowed, allow kinds that match nothing, entries that neither the catalogue nor a custom model has or that are no longer served, ranges in ranges, and keys open to every future model.',
    )
    .addHelpText('after', LINT_HELP)
    .option('--strict', 'exit with 1 when anything is found')
    .action(async (source: string | undefined, options: LintOptions) => {
      await (await analyses()).runLint(env, source, options);
    });
}

const EXPLAIN_EXAMPLE = `
Example:
  $ portcullis policy explain --key CI --model gpt-5 --facts '{"meta": {"ticket": "OPS-1"}, "toolNames": ["search"]}'`;

function explainCommand(policy: Command, env: Environment): void {
  judging(policy.command('explain'))
    .description(
      'Explain one request: its outcome, the rules that decide it, and what would change it. Every violation is named, the smallest sets of rules that decide it, and the nearest permitted alternative; of a model without a credential, that the caller gets 404, and what the rules would do.',
    )
    .requiredOption('--key <key>', 'its id, masked token or description')
    .requiredOption('--model <model>', 'as a request names it')
    .option('--provider <provider>', 'at this provider only')
    .option('--address <address>', 'client address; default: unknown')
    .addOption(
      new Option('--action <action>', 'default: what the model serves').choices(['chat', 'moderation', 'image']),
    )
    .option(
      '--facts <json>',
      'facts of the request for custom policy, as a fixture has them; default: a short chat now',
    )
    .addHelpText('after', EXPLAIN_EXAMPLE)
    .action(async (options: ExplainOptions) => {
      await (await analyses()).runExplain(env, options);
    });
}

const TIGHTEN_HELP = `
The use is the logged calls that were permitted then, are permitted under the current rules, and reached a provider. Of a group it is
the calls of everyone who is in it now. The draft goes to standard output, what is to be said of it to standard error.

Examples:
  $ portcullis policy tighten CI --days 30 -o draft.yaml && portcullis policy diff --draft draft.yaml
  $ portcullis policy tighten contractors --addresses`;

function parseDays(text: string): number {
  if (!/^[1-9][0-9]{0,4}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of days, from 1.');
  return Number(text);
}

function tightenCommand(policy: Command, env: Environment): void {
  policy
    .command('tighten')
    .argument('<key|member|group>', 'an id, the description of a key, an e-mail or the name of a group')
    .description('Propose the tightest rules for the use that the log shows, as a draft, verified by replay.')
    .addOption(new Option('--days <n>', 'the use of the last days').argParser(parseDays).default(30))
    .option('--addresses', 'bind the client addresses too, where every call has a known one')
    .option('-o, --output <file>', 'write the draft to a file; one that is there is replaced')
    .option('--org <organization>', 'the organization, where there are several')
    .addHelpText('after', TIGHTEN_HELP)
    .action(async (reference: string, options: TightenOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runTighten } = await import('./tighten-work.ts');
      await runTighten(env, reference, options);
    });
}

const REPLAY_DIMENSIONS = ['key', 'member', 'rule', 'model'] as const satisfies ReplayOptions['groupBy'];

const REPLAY_HELP = `
What was asked stays as it was logged: its candidates with the prices and names of that time, its address, its key. By default
it is judged under the current rules, for the groups that the key is in now. A key or member that is no longer there
makes no calls: their decisions are counted, and not judged.

--fail-on new-denial means a call that was permitted and would be denied, --fail-on new-access anything that would be permitted
and was not: a call, or a provider of one that was permitted. A draft is written as for \`portcullis policy diff\`, a folder as for
\`portcullis policy plan\`.

Examples:
  $ portcullis replay --draft draft.yaml --since 7d --fail-on new-denial
  $ portcullis replay --folder policy --bundle next.tar.gz --fail-on new-denial
  $ portcullis replay --recorded --from 2026-01-01 --to 2026-01-31
  $ portcullis replay --key CI --group-by rule`;

function replayCommand(program: Command, env: Environment): void {
  timeOptions(withAnalysisOptions(program.command('replay')))
    .description('Judge logged decisions again, and print what would change. Default: those of the last seven days.')
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--model <model>', 'that was asked for, or that served')
    .option('--draft <file>', 'under the current rules after these changes, YAML or JSON')
    .addOption(
      new Option('--folder <folder>', 'under the current rules once this policy folder is applied').conflicts('draft'),
    )
    .option('--bundle <file>', 'under the policy of this bundle (default: the policy in force)')
    .addOption(
      new Option(
        '--recorded',
        'under the rules that each decision saw; exit with 1 unless the result is the same, byte for byte',
      ).conflicts(['draft', 'folder']),
    )
    .addOption(
      new Option(
        '--group-by <dimensions>',
        `a comma list of ${REPLAY_DIMENSIONS.join(', ')}; default: all of them`,
      ).argParser(wordList(REPLAY_DIMENSIONS)),
    )
    .addOption(
      new Option('--fail-on <what...>', 'exit with 1 when anything would be newly denied, or permitted').choices([
        'new-denial',
        'new-access',
      ]),
    )
    .addHelpText('after', REPLAY_HELP)
    .action(async (options: ReplayOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runReplay } = await import('./replay-work.ts');
      await runReplay(env, options);
    });
}

const MODELS_HELP = `
A model is listed when the rules permit it and a provider that serves it has a credential, the operator's, as the last start of the
server has recorded it, or a provider key. Prices are those of the cheapest provider, in USD per million tokens; --mapped shows
each provider's. --tags shows what tag rules can ask for, and who says so.

Examples:
  $ portcullis models --key CI
  $ portcullis models --mapped --json
  $ portcullis models --tags`;

/** `portcullis models`. */
export function modelsCommand(program: Command, env: Environment): void {
  wide(program.command('models'))
    .description('List the models that a key, or the organization, may use, with their prices.')
    .option('--org <organization>', 'the organization, where there are several')
    .option('--key <key>', 'what this key may use: its id, masked token or description')
    .option('--mapped', 'a line for each provider of a model')
    .addOption(
      new Option('--tags', 'a line for each tag of a model at a provider, with its source').conflicts([
        'mapped',
        'json',
      ]),
    )
    .option('--json', 'print JSON, as GET /v1/models answers it')
    .addOption(againstOption())
    .addHelpText('after', MODELS_HELP)
    .action(async (options: ModelsOptions) => {
      // Loaded with the policy engine only here: the other commands start in a fraction of the time.
      const { runModels } = await import('./models-work.ts');
      await runModels(env, options);
    });
}
