// The checkpointing thread: at each message, it moves the pages of the write-ahead log into the database if they are many.

import { parentPort, workerData } from 'node:worker_threads';
import type BetterSqlite3 from 'better-sqlite3';
import { yieldToOthers } from './database-thread.ts';
import { openFile } from './sqlite-file.ts';

/**
 * Pages in the log that start a checkpoint, below the 4000 at which the serving connection checkpoints: a page that is written
 * repeatedly is moved once.
 */
const LONG_LOG = 2500;
/** Pages that are worth the two waits for the disk. */
const ENOUGH_PAGES = 500;

if (typeof workerData !== 'string') throw new TypeError('The thread was given no path.');

const connection = openFile(workerData, { fileMustExist: true }, () => {});
/** Moves nothing; tells how many pages the log has and how many of them are in the database. */
const look = connection.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)');
/** Waits for nobody, and nobody waits for it. */
const checkpoint: BetterSqlite3.Statement = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)');

yieldToOthers();
parentPort?.on('message', () => {
  const { log = 0, checkpointed = 0 } = look.get() ?? {};
  if (log >= LONG_LOG && log - checkpointed >= ENOUGH_PAGES) checkpoint.get();
});
