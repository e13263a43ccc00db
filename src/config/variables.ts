import { readFileSync, statSync } from 'node:fs';
import { entryOf, withoutFinalSlashes } from '../lib/text.ts';

/** A variable is wrong. The message is one line that names it and says what it must be, never what a secret held. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The items of a comma list without the blanks around them; none when the variable is unset. */
export const readList = (text: string | undefined): string[] => text?.split(',').map((item) => item.trim()) ?? [];

/** A URL without a final slash. @throws ConfigError */
export function readUrl(name: string, text: string): string {
  if (!URL.canParse(text)) throw new ConfigError(`${name} must be a URL.`);
  return withoutFinalSlashes(new URL(text).href);
}

/** Returns the result of `parse`; its error becomes a ConfigError that names the variable. */
export function explained<T>(name: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Variables by name, as the process has them. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Bytes of an `ENV_FILE`. */
const MAX_BYTES = 1024 * 1024;

/** Variables that a running server takes from `ENV_FILE` again, also where they were not there before. */
const TAKEN = ['LOG_LEVEL', 'METRICS_TOKEN', 'PEPPER', 'ENCRYPTION_KEY'];

/** Credentials and addresses of providers, which are taken too. */
const OF_PROVIDER = /_(?:API_KEY|BASE_URL)$/;

/**
 * The environment with what the file that `ENV_FILE` names has in its place: what stands there holds, whatever the environment says,
 * since a reload can change the file alone. @throws ConfigError, without a word of what the file holds
 */
export function withEnvFile(env: Variables): Variables {
  const { ENV_FILE: file } = env;
  if (file === undefined || file === '') return env;
  return { ...env, ...parseEnvFile(fileText(file)) };
}

function fileText(file: string): string {
  let text: string;
  try {
    const { mode, size } = statSync(file);
    if (process.platform !== 'win32' && (mode & 0o007) !== 0) {
      throw new ConfigError(`ENV_FILE: everyone can read or change ${file}: set its mode to 0600 or 0640.`);
    }
    if (size > MAX_BYTES) throw new ConfigError(`ENV_FILE: ${file} is longer than ${MAX_BYTES} bytes.`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(
      `ENV_FILE: cannot read ${file}: ${error instanceof Error && 'code' in error ? error.code : error}.`,
    );
  }
  return text;
}

/** One `NAME=value` a line, as systemd and Docker take it; blank lines and those that begin with `#` are left out. */
function parseEnvFile(text: string): Variables {
  const found = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [, name, value = ''] = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new ConfigError(`ENV_FILE: line ${index + 1} is not NAME=value.`);
    if (name === 'ENV_FILE') throw new ConfigError('ENV_FILE: the file must not name another ENV_FILE.');
    if (found.has(name)) throw new ConfigError(`ENV_FILE: line ${index + 1} sets ${name} again.`);
    found.set(name, withoutQuotes(value.trim()));
  }
  return Object.fromEntries(found);
}

function withoutQuotes(value: string): string {
  const isQuoted = value.length > 1 && ['"', "'"].some((quote) => value.startsWith(quote) && value.endsWith(quote));
  return isQuoted ? value.slice(1, -1) : value;
}

/** A change to the environment of a running server. */
export interface Reload {
  /** The environment from now on: the one before, with the variables that were taken. */
  readonly env: Variables;
  readonly taken: readonly string[];
  /** Changed variables that hold after a restart alone. */
  readonly waiting: readonly string[];
}

/**
 * Compares the environment that holds with the one that would. A credential or address that was not there before, or is there no
 * longer, changes which providers there are: it needs a restart, as every other setting does.
 */
export function reloadOf(before: Variables, next: Variables): Reload {
  const names = [...new Set([...Object.keys(before), ...Object.keys(next)])].sort();
  const changed = names.filter((name) => entryOf(before, name) !== entryOf(next, name));
  const isTaken = (name: string): boolean =>
    TAKEN.includes(name) || (OF_PROVIDER.test(name) && Boolean(entryOf(before, name)) && Boolean(entryOf(next, name)));
  const taken = changed.filter(isTaken);
  const env = { ...before, ...Object.fromEntries(taken.map((name) => [name, entryOf(next, name)])) };
  return { env, taken, waiting: changed.filter((name) => !isTaken(name)) };
}
