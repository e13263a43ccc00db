import type BetterSqlite3 from 'better-sqlite3';
import type { Job } from '../../lib/threads.ts';
import { openFile } from './sqlite-file.ts';

/**
 * Pages in the log that start a checkpoint, below the 4000 at which the serving connection checkpoints: a page that is written
 * repeatedly is moved once.
 */
const LONG_LOG = 2500;
/** Pages that are worth the two waits for the disk. */
const ENOUGH_PAGES = 500;

/** At each question it moves the pages of the write-ahead log into the database, if they are many. */
export function startJob({ databasePath }: { readonly databasePath: string }): Job<object, void> {
  const connection = openFile(databasePath, { fileMustExist: true }, () => {});
  /** Moves nothing; tells how many pages the log has and how many of them are in the database. */
  const look = connection.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)');
  /** Waits for nobody, and nobody waits for it. */
  const checkpoint: BetterSqlite3.Statement = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  return {
    answer() {
      const { log = 0, checkpointed = 0 } = look.get() ?? {};
      if (log >= LONG_LOG && log - checkpointed >= ENOUGH_PAGES) checkpoint.get();
    },
  };
}
