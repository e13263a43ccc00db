import type { Command } from 'commander';
import { UsageError } from './usage-error.ts';
import type { Environment } from './workspace.ts';

export interface TokenOptions {
  readonly tokenStdin?: true;
  readonly tokenEnv?: string;
}

/** Characters of standard input that are read at most: a secret is shorter by far. */
const MAX_INPUT = 65_536;

/** A secret is never an argument: those of a running process can be seen by everybody on the machine. */
export const takingToken = (command: Command): Command =>
  command
    .option('--token-stdin', "read the provider's secret from standard input, such as a file: < key.txt")
    .option('--token-env <name>', "take the provider's secret from this environment variable");

/** The secret from where the options say, or undefined when they name no place. */
export async function readToken({ tokenStdin, tokenEnv }: TokenOptions, env: Environment): Promise<string | undefined> {
  if (tokenStdin && tokenEnv !== undefined) throw new UsageError('Give --token-stdin or --token-env, not both.');
  if (tokenStdin) return (await readInput()).replace(/\r?\n$/, '');
  if (tokenEnv === undefined) return undefined;
  const token = env[tokenEnv];
  if (token === undefined) throw new Error(`There is no environment variable ${tokenEnv}.`);
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
