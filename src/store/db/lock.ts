import { join } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { openFile } from './open-file.ts';
import { isBusy } from './unavailable.ts';

export interface DataDirLock {
  release(): void;
}

/** The lock is held by another process. */
export class DataDirInUse extends Error {}

/** Keeps the connections of held locks: one that nobody refers to is closed by the garbage collector, and its lock with it. */
const held = new Set<BetterSqlite3.Database>();

/**
 * Makes this process the only one that uses `dataDir`: an open exclusive transaction, which dies with the process however
 * it ends. @throws DataDirInUse when another process holds it
 */
export function lockDataDir(dataDir: string): DataDirLock {
  return lockOf(() => openLock(dataDir));
}

/** Milliseconds that a command waits for another one which changes the secrets, or copies them. */
const SECRETS_WAIT_MS = 30_000;

/**
 * Lets nobody else change or copy the server's secrets while `work` runs; a server goes on meanwhile.
 * @throws Error when another command is not done with them in half a minute
 */
export async function withSecretsLocked<T>(dataDir: string, work: () => T | Promise<T>): Promise<T> {
  const lock = lockOf(() => openSecretsLock(dataDir));
  try {
    return await work();
  } finally {
    lock.release();
  }
}

function lockOf(open: () => BetterSqlite3.Database): DataDirLock {
  const connection = open();
  held.add(connection);
  return {
    release: () => {
      held.delete(connection);
      connection.close();
    },
  };
}

function openSecretsLock(dataDir: string): BetterSqlite3.Database {
  try {
    return openExclusively(join(dataDir, 'secrets-lock.sqlite'), SECRETS_WAIT_MS);
  } catch (error) {
    if (!(error instanceof Error) || !isBusy(error.cause)) throw error;
    throw new Error('Another command changes or copies the secrets: try again when it has ended.', { cause: error });
  }
}

const openExclusively = (file: string, timeout: number): BetterSqlite3.Database =>
  openFile(file, { timeout }, (connection) => connection.exec('BEGIN EXCLUSIVE'));

function openLock(dataDir: string): BetterSqlite3.Database {
  try {
    return openExclusively(join(dataDir, 'lock.sqlite'), 0);
  } catch (error) {
    if (!(error instanceof Error) || !isBusy(error.cause)) throw error;
    throw new DataDirInUse(`Another process is already using the data directory ${dataDir}.`, { cause: error });
  }
}
