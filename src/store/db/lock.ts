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
  const connection = openLock(dataDir);
  held.add(connection);
  return {
    release: () => {
      held.delete(connection);
      connection.close();
    },
  };
}

function openLock(dataDir: string): BetterSqlite3.Database {
  try {
    return openFile(join(dataDir, 'lock.sqlite'), { timeout: 0 }, (connection) => connection.exec('BEGIN EXCLUSIVE'));
  } catch (error) {
    if (!(error instanceof Error) || !isBusy(error.cause)) throw error;
    throw new DataDirInUse(`Another process is already using the data directory ${dataDir}.`, { cause: error });
  }
}
