import { readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeDurably } from '../db/durable-file.ts';
import type { ServerKeys } from './secrets.ts';

/** The server that runs on a data directory, and the ids of the secrets that it has; the first of each makes what is new. */
export interface Serving {
  readonly pid: number;
  /** In which its number means it; empty where there are none. */
  readonly namespace: string;
  readonly peppers: readonly string[];
  readonly encryptionKeys: readonly string[];
}

/** Milliseconds that a server has to take new secrets. */
const MAX_WAIT = 10_000;

const REMEDY = 'Send it SIGHUP (systemctl reload portcullis), then run this again.';

const servingPath = (dataDir: string): string => path.join(dataDir, 'serving.json');

/** Containers count their processes apart: a number of one means another process elsewhere. */
function ownNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** Notes which secrets this process has, for commands that change them while it runs. */
export function noteServing(
  dataDir: string,
  { peppers, encryptionKeys }: { readonly peppers: ServerKeys; readonly encryptionKeys: ServerKeys },
): void {
  const ids = (keys: ServerKeys): string[] => keys.map(({ id }) => id);
  const serving: Serving = {
    pid: process.pid,
    namespace: ownNamespace(),
    peppers: ids(peppers),
    encryptionKeys: ids(encryptionKeys),
  };
  writeDurably(servingPath(dataDir), `${JSON.stringify(serving)}\n`);
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

function isServing(value: unknown): value is Serving {
  if (typeof value !== 'object' || value === null) return false;
  if (!('pid' in value && 'namespace' in value && 'peppers' in value && 'encryptionKeys' in value)) return false;
  const { pid, namespace, peppers, encryptionKeys } = value;
  return Number.isSafeInteger(pid) && typeof namespace === 'string' && isTexts(peppers) && isTexts(encryptionKeys);
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
  throw new Error(`The server on ${dataDir} does not say which secrets it has: stop it first.`);
}

/** False when the system tells that a process is another program, which has the number of a server that was killed. */
function isOurs(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('cli.ts');
  } catch {
    return true;
  }
}

/** Makes the running server read its secrets again, and resolves once it has those that are wanted. @throws Error that says what to do */
export async function reloadServer(dataDir: string, hasTaken: (serving: Serving) => boolean): Promise<void> {
  const { pid, namespace } = readServing(dataDir);
  if (namespace !== ownNamespace()) throw new Error(`The server runs in another container. ${REMEDY}`);
  if (!isOurs(pid)) throw new Error(`Process ${pid} is no server of Portcullis. ${REMEDY}`);
  try {
    process.kill(pid, 'SIGHUP');
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
