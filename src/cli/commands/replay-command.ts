import { type Command, Option } from 'commander';
import { wordList } from '../output/word-list.ts';
import type { ReplayOptions } from '../run/run-replay.ts';
import type { Environment } from '../run/workspace.ts';
import { common } from '../terminal/common-options.ts';
import { timeOptions } from '../terminal/time-options.ts';

const DIMENSIONS = ['key', 'member', 'rule', 'model'] as const satisfies ReplayOptions['groupBy'];

const HELP = `
What was asked stays as it was logged: its candidates with the prices and names of that time, its address, its key. By default
it is judged by the rules that are in force now, for the groups that the key is in now. A key or member that is no longer there makes no calls: their
decisions are counted, and not judged.

--fail-on new-denial means a call that was permitted and would be denied, --fail-on new-access anything that would be permitted
and was not: a call, or a provider of one that was permitted. A draft is written as for \`portcullis policy diff\`.

Examples:
  $ portcullis replay --draft draft.yaml --since 7d --fail-on new-denial
  $ portcullis replay --recorded --from 2026-01-01 --to 2026-01-31
  $ portcullis replay --key CI --group-by rule`;

/** `portcullis replay`. */
export function replayCommand(program: Command, env: Environment): void {
  timeOptions(common(program.command('replay')))
    .description('Judge logged decisions again, and print what would change. Default: those of the last seven days.')
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--model <model>', 'that was asked for, or that served')
    .option('--draft <file>', 'by the rules that are in force now after these changes, YAML or JSON')
    .addOption(
      new Option(
        '--recorded',
        'by the rules that each decision saw; exit with 1 unless the same comes, byte for byte',
      ).conflicts('draft'),
    )
    .addOption(
      new Option('--group-by <dimensions>', `a comma list of ${DIMENSIONS.join(', ')}; default: all of them`).argParser(
        wordList(DIMENSIONS),
      ),
    )
    .addOption(
      new Option('--fail-on <what...>', 'exit with 1 when anything would be newly denied, or permitted').choices([
        'new-denial',
        'new-access',
      ]),
    )
    .addHelpText('after', HELP)
    .action(async (options: ReplayOptions) => {
      // Loaded only here, with the policy engine: the other commands start in a fraction of the time.
      const { runReplay } = await import('../run/run-replay.ts');
      await runReplay(env, options);
    });
}
