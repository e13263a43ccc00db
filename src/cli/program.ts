import { Command, CommanderError } from 'commander';
import { ApiError } from '../domain/errors.ts';
import { PolicyFailure } from '../policy/data-document.ts';
import { buildText, readBuild } from '../version.ts';
import { aliasCommands } from './alias-commands.ts';
import { auditCommands } from './audit-commands.ts';
import { backupCommands } from './backup-commands.ts';
import { budgetCommands } from './budget-commands.ts';
import { customModelCommands, customProviderCommands } from './custom-provider-commands.ts';
import { groupCommands } from './group-commands.ts';
import { keyCommands } from './key-commands.ts';
import { callCommands, decisionCommands, requestCommands } from './log-commands.ts';
import { masterKeyCommands } from './master-key-commands.ts';
import { memberCommands } from './member-commands.ts';
import { organizationCommands, projectCommands } from './organization-commands.ts';
import { modelsCommand } from './policy/analysis-commands.ts';
import { policyCommands } from './policy/policy-commands.ts';
import { providersCommands } from './provider-check.ts';
import { providerKeyCommands } from './provider-key-commands.ts';
import { ruleCommands } from './rule-commands.ts';
import { secretsCommands } from './secrets-commands.ts';
import { tagCommands } from './tag-commands.ts';
import { fileFault, refuseSecrets, withoutValues } from './terminal/arguments.ts';
import { warn } from './terminal/output.ts';
import { inOptions, inOurWords, UsageError } from './terminal/usage-faults.ts';
import { usageCommand } from './usage-commands.ts';
import type { Environment } from './workspace.ts';

const EXAMPLES = `
Examples:
  $ portcullis serve
  $ portcullis keys create --description "CI" --period-limit 10 --period 1day
  $ portcullis rules add --key "CI" deny_models 'openai/*'
  $ portcullis keys list --json

The server need not run, and may: changes hold from the next request on. All commands but serve work on the database
in DATA_DIR (default: the folder "data" of the installation).`;

/**
 * Runs one command line, without the program's name. Resolves with the exit code: 0 done, 1 refused or failed (one line on
 * stderr says why), 2 wrong usage.
 */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  try {
    refuseSecrets(args);
    await createProgram(env).parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const fault = fileFault(inOptions(error), args);
    warn(explain(fault));
    return fault instanceof UsageError ? 2 : 1;
  }
}

/** All commands, unparsed. */
export function createProgram(env: Environment): Command {
  const program = new Command('portcullis')
    .description('A policy-engine gateway for large language models.')
    .version(buildText(readBuild()), '-V, --version', 'Print version, commit and number of the database schema.')
    .exitOverride()
    .configureOutput({
      outputError: (text) => warn(inOurWords(withoutValues(text))),
    })
    .configureHelp({ subcommandDescription: (command) => firstSentence(command.description()) })
    .showSuggestionAfterError()
    .addHelpText('after', EXAMPLES);
  program
    .commandsGroup('Server:')
    .command('serve')
    .description(
      'Serve the gateway and the management listener. The first start creates the database and the first keys.',
    )
    .action(async () => {
      // Loaded only here: the other commands start in a fraction of the time.
      const { serve } = await import('../main.ts');
      await serve(env);
    });
  backupCommands(program, env);
  secretsCommands(program, env);
  program.commandsGroup('Keys, rules and budgets:');
  keyCommands(program, env);
  ruleCommands(program, env);
  groupCommands(program, env);
  budgetCommands(program, env);
  program.commandsGroup('What the rules mean:');
  policyCommands(program, env);
  modelsCommand(program, env);
  program.commandsGroup('Providers and models:');
  providersCommands(program, env);
  providerKeyCommands(program, env);
  customProviderCommands(program, env);
  customModelCommands(program, env);
  aliasCommands(program, env);
  tagCommands(program, env);
  program.commandsGroup('Organizations, projects and members:');
  organizationCommands(program, env);
  projectCommands(program, env);
  memberCommands(program, env);
  masterKeyCommands(program, env);
  program.commandsGroup('Reports:');
  usageCommand(program, env);
  callCommands(program, env);
  decisionCommands(program, env);
  requestCommands(program, env);
  auditCommands(program, env);
  return program;
}

/** First sentence of a command's description, for the list of its group; the command's own help shows all of it. */
function firstSentence(text: string): string {
  const end = text.indexOf('. ');
  return end === -1 ? text : text.slice(0, end + 1);
}

/** The one line that says what was wrong, with the place in the request unless the sentence names it. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof ApiError && error.param !== null && !error.message.includes(error.param.slice(1))) {
    return `${error.param}: ${error.message}`;
  }
  // The cause contains the remedy for an unusable policy.
  const remedy = error instanceof PolicyFailure && error.cause instanceof Error ? ` ${error.cause.message}` : '';
  return `${error.message}${remedy}`;
}
