import { type Command, Option } from 'commander';
import type { GenerateOptions } from '../../run/run-generate.ts';
import type { Environment } from '../../run/workspace.ts';

const EXAMPLES = `
Examples:
  $ portcullis policy generate --database -o policy/cases/generated
  $ portcullis policy generate --key CI -o ci.yaml && portcullis policy test ci.yaml

Commit them, and a change of rules or policy that moves a border shows. Addresses at the ends of ranges and next to them, models by every name and those with neighbouring names, prices at a
cap and just above it. Models come from the catalogue and the organization's own ones, whether there is a credential or not:
a fixture holds them with their prices, so that it says the same wherever it is run.
Into a folder goes one file for each key, member and organization that has rules; other files in it stay as they are.`;

/** `portcullis policy generate`. */
export function generateCommand(policy: Command, env: Environment): void {
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
    .addHelpText('after', EXAMPLES)
    .action(async (options: GenerateOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runGenerate } = await import('../../run/run-generate.ts');
      await runGenerate(env, options);
    });
}
