import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Command, Option } from 'commander';
import { SECRET_PREFIX } from '../../domain/id.ts';
import { entryOf } from '../../lib/text.ts';
import type { Environment } from '../workspace.ts';
import { UsageError } from './usage-faults.ts';

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of this path is not a folder',
  EISDIR: 'this is a folder',
  EEXIST: 'this exists already',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'this file system is read-only',
  ENOSPC: 'no space is left on the device',
};

/** A failure of the file system in a sentence; a file that the command line names is wrong usage. Others are returned as they are. */
export function fileFault(error: unknown, args: readonly string[]): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('path' in error)) return error;
  const { code, path: file } = error;
  if (typeof code !== 'string' || typeof file !== 'string') return error;
  const fault = entryOf(FILE_FAULTS, code);
  if (fault === undefined) return error;
  const named = args.find((argument) => isSameFile(argument.replace(/^--[a-z-]+=/, ''), file));
  return named === undefined ? new Error(`${file}: ${fault}.`, { cause: error }) : new UsageError(`${file}: ${fault}.`);
}

const isSameFile = (argument: string, file: string): boolean => path.resolve(argument) === path.resolve(file);

/** The JSON value in a file. @throws UsageError for what is not JSON; what the file system says otherwise */
export function readJsonFile(file: string): unknown {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${file} is not valid JSON.`);
  }
}

/** Before the work whose result it is to hold. @throws UsageError for a file that cannot be written */
export function checkWritable(file: string): void {
  const folder = path.dirname(path.resolve(file));
  if (!existsSync(folder)) throw new UsageError(`${file} cannot be written: there is no folder ${folder}.`);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${file} is a folder.`);
  try {
    accessSync(existsSync(file) ? file : folder, constants.W_OK);
  } catch {
    throw new UsageError(`${file} cannot be written: permission denied.`);
  }
}

/** A secret that Portcullis made, wherever it stands in an argument. */
const OWN_SECRET = new RegExp(`(?<![0-9A-Za-z])(?:${Object.values(SECRET_PREFIX).join('|')})[0-9A-Za-z]{46}`);

/** Refuses a command line that holds a key or a token, whatever it was meant for. @throws UsageError that does not repeat it */
export function refuseSecrets(args: readonly string[]): void {
  if (!args.some((argument) => OWN_SECRET.test(argument))) return;
  throw new UsageError(
    'An argument holds a secret, and everyone on this machine can see those. Name a key by its id, masked token or description; ' +
      'give the token of an invitation by `portcullis members accept --token-stdin < file` or --token-env <name>. ' +
      'Replace the secret if others use this machine.',
  );
}

/** Commander's message for a faulty command line, without the values of arguments: any of them may be a secret. */
export const withoutValues = (text: string): string =>
  text
    .split("'")
    .map((part) => (part.startsWith('--') ? part.split('=', 1).join('') : part))
    .join("'")
    .replace(/(but got \d+): [\s\S]*$/, '$1.');

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

/** A value given as a name may be the secret itself: it is repeated only if it is clearly a name. */
const nameOrNothing = (text: string): string =>
  /^[A-Z]+(_[A-Z]+)*$/.test(text) ? text : 'of the name that --token-env gives';

/** Reads the token as above, and fails without one. */
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
