import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeDurably } from '../db/data-dir.ts';
import { isTexts, type ServerKeys, type ServerSecrets } from './secrets.ts';

/** The server that runs on a data directory, and the ids of the secrets that it has; the first of each makes what is new. */
export interface Serving {
  readonly pid: number;
  /** When it began, as the system has it: another process with its number began at another time. */
  readonly began: string;
  /** In which its number means it; empty where there are none. */
  readonly namespace: string;
  readonly peppers: readonly string[];
  readonly encryptionKeys: readonly string[];
}

/** Milliseconds that a server has to take new secrets. */
const MAX_WAIT = 10_000;

const REMEDY = 'Send it SIGHUP (systemctl reload portcullis), then run this again.';

/** Signal on which a server reads its secrets again, also in a terminal, where SIGHUP stops it. */
export const RELOAD_SIGNAL = 'SIGUSR2';

const servingPath = (dataDir: string): string => path.join(dataDir, 'serving.json');

/** Containers count their processes apart: a number of one means another process elsewhere. */
function ownNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

const psBegin = (pid: number): string =>
  execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).trim();

/** Empty when there is no such process. */
function beginOf(pid: number): string {
  try {
    if (!existsSync('/proc/self/stat')) return psBegin(pid);
    // The name of the program, in parentheses, may hold anything; the time is the 20th field behind it.
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** Forgets the server that ran: when another begins, and when this one ends, while it holds the lock of the data directory. */
export const forgetServing = (dataDir: string): void => rmSync(servingPath(dataDir), { force: true });

/** Notes which secrets this process has, for commands that change them while it runs. */
export function noteServing(
  dataDir: string,
  { peppers, encryptionKeys }: { readonly peppers: ServerKeys; readonly encryptionKeys: ServerKeys },
): void {
  const ids = (keys: ServerKeys): string[] => keys.map(({ id }) => id);
  const serving: Serving = {
    pid: process.pid,
    began: beginOf(process.pid),
    namespace: ownNamespace(),
    peppers: ids(peppers),
    encryptionKeys: ids(encryptionKeys),
  };
  writeDurably(servingPath(dataDir), `${JSON.stringify(serving)}\n`);
}

function isServing(value: unknown): value is Serving {
  if (typeof value !== 'object' || value === null) return false;
  if (!('pid' in value && 'began' in value && 'namespace' in value && 'peppers' in value && 'encryptionKeys' in value))
    return false;
  const { pid, began, namespace, peppers, encryptionKeys } = value;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return false;
  if (typeof began !== 'string' || typeof namespace !== 'string') return false;
  return isTexts(peppers) && isTexts(encryptionKeys);
}

/** The server that holds the lock of the data directory. @throws Error when it has noted nothing that can be read */
export function readServing(dataDir: string): Serving {
  let serving: unknown;
  try {
    serving = JSON.parse(readFileSync(servingPath(dataDir), 'utf8'));
  } catch {
    serving = undefined;
  }
  if (isServing(serving)) return serving;
  throw new Error(
    `The server on ${dataDir} is starting or stopping, or serving.json there cannot be read: try again, or stop it first.`,
  );
}

/** The server, which a signal reaches: it runs here, and is the process that noted itself. @throws Error that says what to do */
function reachableServer(dataDir: string): Serving {
  const serving = readServing(dataDir);
  const { pid, began, namespace } = serving;
  if (process.platform === 'win32') throw new Error('On Windows the server cannot be signalled: stop it first.');
  if (namespace !== ownNamespace()) throw new Error(`The server runs in another container. ${REMEDY}`);
  if (began === '' || beginOf(pid) !== began) {
    throw new Error(`Process ${pid}, which serving.json names, is no longer a server: try again when a server runs.`);
  }
  return serving;
}

/**
 * Makes sure, before secrets change, that the running server can be signalled, and has those that the command found.
 * @throws Error that says what to do
 */
export function assertTakesSecrets(dataDir: string, found: Pick<ServerSecrets, 'peppers' | 'encryptionKeys'>): void {
  const serving = reachableServer(dataDir);
  for (const kind of ['peppers', 'encryptionKeys'] as const) {
    const [current] = serving[kind];
    if (found[kind].some(({ id }) => id === current)) continue;
    throw new Error(
      `The server has other ${kind === 'peppers' ? 'peppers' : 'encryption keys'} than this command: reload it (SIGHUP), or run this with its environment.`,
    );
  }
}

/** Makes the running server read its secrets again, and resolves once it has those that are wanted. @throws Error that says what to do */
export async function reloadServer(dataDir: string, hasTaken: (serving: Serving) => boolean): Promise<void> {
  const { pid } = reachableServer(dataDir);
  try {
    process.kill(pid, RELOAD_SIGNAL);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw new Error(`The server, process ${pid}, cannot be signalled (${code}). ${REMEDY}`, { cause: error });
  }
  const end = Date.now() + MAX_WAIT;
  while (!hasTaken(readServing(dataDir))) {
    if (Date.now() > end) {
      throw new Error(`The server, process ${pid}, has not taken the new secrets: its log says why. ${REMEDY}`);
    }
    await sleep(50);
  }
}
