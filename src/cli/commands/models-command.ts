import { type Command, Option } from 'commander';
import type { ModelsOptions } from '../run/run-models.ts';
import type { Environment } from '../run/workspace.ts';
import { wide } from '../terminal/common-options.ts';

const HELP = `
A model is listed when the rules permit it and a provider that serves it has a credential, in the environment of this command (run
it with the server's) or as a provider key. Prices are those of the cheapest provider, in USD per million tokens; --mapped shows
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
    .addHelpText('after', HELP)
    .action(async (options: ModelsOptions) => {
      // Loaded with the policy engine only here: the other commands start in a fraction of the time.
      const { runModels } = await import('../run/run-models.ts');
      await runModels(env, options);
    });
}
