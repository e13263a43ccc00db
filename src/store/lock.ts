import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { isBusy } from './unavailable.ts';

export interface DataDirLock {
  release(): void;
}

/** Keeps the connections of held locks: one that nobody refers to is closed by the garbage collector, and its lock with it. */
const held = new Set<BetterSqlite3.Database>();

/**
 * Makes this process the only one that serves `dataDir`: an open exclusive transaction, which dies with the process however
 * it ends. Throws when another process holds it.
 */
export function lockDataDir(dataDir: string): DataDirLock {
  const connection = new BetterSqlite3(join(dataDir, 'lock.sqlite'), { timeout: 0 });
  try {
    connection.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    connection.close();
    if (!isBusy(error)) throw error;
    throw new Error(`Another process already serves the data directory ${dataDir}.`, { cause: error });
  }
  held.add(connection);
  return {
    release: () => {
      held.delete(connection);
      connection.close();
    },
  };
}
