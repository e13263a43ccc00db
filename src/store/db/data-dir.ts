import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type BetterSqlite3 from 'better-sqlite3';
import { ConfigError } from '../../config/variables.ts';
import { makeFolders } from '../../lib/files.ts';
import { isBusy, openFile } from './sqlite-file.ts';

/** The one SQLite file of a data directory. */
export const databasePath = (dataDir: string): string => join(dataDir, 'portcullis.sqlite');

/** Makes the data directory, readable by its owner alone: it holds the server's secrets. @throws ConfigError */
export function createDataDir(dataDir: string): void {
  try {
    makeFolders(dataDir, 0o700);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`DATA_DIR: cannot write ${dataDir}: ${fault.replace(/\.$/, '')}.`);
  }
}

/** Whether the data directory has a database already: then the secrets that it was made with must be there too. */
export const hasDatabase = (dataDir: string): boolean => existsSync(databasePath(dataDir));

interface DataDirLock {
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

/** Makes what was done to the names in a folder survive the loss of power, where the system can. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return; // It opens no folders.
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes a file that its owner alone reads: next to its place, then moved there, so that a crash leaves the old one or the
 * whole new one.
 */
export function writeDurably(path: string, content: string | Uint8Array): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  syncFolder(dirname(path));
}
