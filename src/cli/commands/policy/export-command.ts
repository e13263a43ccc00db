import { type Command, Option } from 'commander';
import type { ExportOptions } from '../../run/run-export.ts';
import type { Environment } from '../../run/workspace.ts';

const EXAMPLES = `
Examples:
  $ portcullis policy export -o exported
  $ portcullis policy export test/policy/cases --database -o exported.tar.gz

Then, with stock OPA:
  $ opa test --timeout 5m -b exported
  $ opa eval -b exported -i exported/inputs/0001.json data.gateway.authz.decision

world.json in it holds the rules as they were written: portcullis policy diff exported/world.json, policy test --rules.
Credentials and custom models are no rules, and are not exported.`;

/** `portcullis policy export`. */
export function exportCommand(policy: Command, env: Environment): void {
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
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], options: ExportOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runExport } = await import('../../run/run-export.ts');
      await runExport(env, paths, options);
    });
}
