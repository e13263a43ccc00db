import { type Command, InvalidArgumentError, Option } from 'commander';
import type { PolicyTestOptions } from '../../run/run-policy-test.ts';
import type { Environment } from '../../run/workspace.ts';

const EXAMPLES = `
Examples:
  $ portcullis policy test
  $ portcullis policy test fixtures/ci.yaml --filter office
  $ portcullis policy test --coverage --kinds-threshold 0
  $ portcullis policy test fixtures --folder rules
  $ portcullis policy test fixtures --database data --coverage --kinds-threshold 0

Exit code: 0 all passed, 1 a request failed or too little is covered, 2 wrong usage or a fixture that makes no sense.`;

function parsePercent(text: string): number {
  const percent = Number(text);
  if (!/^[0-9]{1,3}(\.[0-9]+)?$/.test(text) || percent > 100) {
    throw new InvalidArgumentError('It must be a percentage from 0 to 100.');
  }
  return percent;
}

/** `portcullis policy test`. */
export function policyTestCommand(policy: Command, env: Environment): void {
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
    .option('--watch', 'run again whenever a file changes, until Ctrl-C')
    .addOption(new Option('--database <folder>', 'test the rules in this DATA_DIR').conflicts(['rules', 'folder']))
    .addOption(new Option('--rules <file>', 'test the rules of this exported document').conflicts('folder'))
    .option('--folder <folder>', 'test the rules that this policy folder states; needs no database')
    .option('--bundle <file>', 'test the policy of this bundle (default: the policy in force)')
    .option('--org <organization>', 'the organization, where the database has several')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], options: PolicyTestOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runPolicyTest } = await import('../../run/run-policy-test.ts');
      await runPolicyTest(env, paths, options);
    });
}
