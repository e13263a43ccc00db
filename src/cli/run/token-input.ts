import { type Command, Option } from 'commander';
import { entryOf } from '../../lib/text.ts';
import { UsageError } from '../terminal/usage-error.ts';
import type { Environment } from './workspace.ts';

export interface TokenOptions {
  readonly tokenStdin?: true;
  readonly tokenEnv?: string;
}

/** Characters of standard input that are read at most: a secret is shorter by far. */
const MAX_INPUT = 65_536;

const NEVER_AN_ARGUMENT =
  'A secret is never an argument, because everyone on this machine can see those: use --token-stdin < file, or --token-env <name>.';

/**
 * Options that say where a secret is. One that comes as an argument is refused without being repeated.
 * @param what whose secret it is, in words
 */
export const takingToken = (command: Command, what: string): Command =>
  command
    .option('--token-stdin', `read ${what} from standard input, such as a file: < token.txt`)
    .option('--token-env <name>', `take ${what} from this environment variable`)
    .addOption(new Option('--token [secret]').argParser(refuseOption).hideHelp())
    .allowExcessArguments()
    .hook('preAction', (_, { args, registeredArguments }) => {
      if (args.length > registeredArguments.length) throw new UsageError(NEVER_AN_ARGUMENT);
    });

function refuseOption(): never {
  throw new UsageError(`unknown option '--token'. ${NEVER_AN_ARGUMENT}`);
}

/** The secret from where the options say, or undefined when they name no place. */
export async function readToken({ tokenStdin, tokenEnv }: TokenOptions, env: Environment): Promise<string | undefined> {
  if (tokenStdin && tokenEnv !== undefined) throw new UsageError('Give --token-stdin or --token-env, not both.');
  if (tokenStdin) return (await readInput()).replace(/\r?\n$/, '');
  if (tokenEnv === undefined) return undefined;
  const token = entryOf(env, tokenEnv);
  if (token === undefined) throw new Error(`There is no environment variable ${nameOrNothing(tokenEnv)}.`);
  return token;
}

/** What was given as a name may be the secret itself: only what is plainly a name is repeated. */
const nameOrNothing = (text: string): string =>
  /^[A-Z]+(_[A-Z]+)*$/.test(text) ? text : 'of the name that --token-env gives';

/** The same for a command that cannot do without. */
export async function requireToken(options: TokenOptions, env: Environment): Promise<string> {
  const token = await readToken(options, env);
  if (token === undefined) throw new UsageError('Say where the secret is: --token-stdin or --token-env.');
  return token;
}

async function readInput(): Promise<string> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) {
    text += chunk;
    if (text.length > MAX_INPUT) throw new Error('Standard input is too long for a secret.');
  }
  return text;
}
