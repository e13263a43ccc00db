import { type Command, InvalidArgumentError } from 'commander';
import type { BuildCommandOptions } from '../../run/bundle/run-build.ts';
import type { BundleOptions } from '../../run/bundle/run-bundle.ts';
import type { Environment } from '../../run/workspace.ts';
import { analysisCommands } from './analysis-commands.ts';
import { exportCommand } from './export-command.ts';
import { folderCommands } from './folder-commands.ts';
import { generateCommand } from './generate-command.ts';
import { policyTestCommand } from './policy-test-command.ts';

/** `portcullis policy …`. */
export function policyCommands(program: Command, env: Environment): void {
  const policy = program.command('policy').description('Test and analyse what the rules permit.');
  policyTestCommand(policy, env);
  analysisCommands(program, policy, env);
  folderCommands(policy, env);
  generateCommand(policy, env);
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
      const { buildAndTry } = await import('../../run/bundle/run-build.ts');
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
      const { showBundleStatus } = await import('../../run/bundle/run-bundle.ts');
      showBundleStatus(env, options);
    });
  bundle
    .command('check <file>')
    .description('Try a bundle as the server would, with its settings, and say why it would be refused.')
    .option('--json', 'print JSON')
    .action(async (file: string, options: BundleOptions) => {
      const { checkBundle } = await import('../../run/bundle/run-bundle.ts');
      await checkBundle(env, file, options);
    });
  bundle
    .command('rollback')
    .description(
      'Put the bundle before back in force; a running server follows within 2 seconds. The one that is left is not activated again until the source has another one; a second rollback returns to it.',
    )
    .option('--json', 'print JSON')
    .action(async (options: BundleOptions) => {
      const { rollBackBundle } = await import('../../run/bundle/run-bundle.ts');
      await rollBackBundle(env, options);
    });
}
