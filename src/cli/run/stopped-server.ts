import { type Config, readConfig } from '../../config/config.ts';
import type { Dispensable } from '../../store/backup/check-data-dir.ts';
import { databasePath } from '../../store/db/data-dir.ts';
import { type Database, openDatabase } from '../../store/db/database.ts';
import { DataDirInUse, lockDataDir, withSecretsLocked } from '../../store/db/lock.ts';
import { checked, type Environment } from './workspace.ts';

/** Reads the configuration and keeps every server away from the data directory while `work` runs. @throws Error when one uses it */
export async function whileNobodyServes<T>(env: Environment, work: (config: Config) => T | Promise<T>): Promise<T> {
  const config = readConfig(env);
  process.umask(0o077); // What is made in the data directory is its owner's alone, as with `serve`.
  const lock = lockFor(config.dataDir);
  try {
    return await work(config);
  } finally {
    lock.release();
  }
}

/**
 * Runs `work` on the secrets also while a server uses the data directory, which it is then told of; without one, every server is
 * kept away meanwhile. One command after the other.
 */
export async function alsoWhileServed<T>(
  env: Environment,
  work: (config: Config, isServed: boolean) => T | Promise<T>,
): Promise<T> {
  const config = readConfig(env);
  process.umask(0o077);
  return withSecretsLocked(config.dataDir, async () => {
    const lock = lockUnlessServed(config.dataDir);
    try {
      return await work(config, lock === undefined);
    } finally {
      lock?.release();
    }
  });
}

function lockUnlessServed(dataDir: string): { release(): void } | undefined {
  try {
    return lockDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirInUse) return undefined;
    throw error;
  }
}

function lockFor(dataDir: string): { release(): void } {
  try {
    return lockDataDir(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirInUse)) throw error;
    throw new Error(`${error.message} Stop it first, and start it again afterwards.`, { cause: error });
  }
}

/** The command line waits this long for another process's transaction to end. */
const BUSY_TIMEOUT_MS = 5000;

/**
 * Runs `work` on a connection of its own, on which changes can be audited.
 * @param dispensable secrets that `work` can do without
 */
export function withDatabase<T>(
  config: Config,
  work: (db: Database) => T | Promise<T>,
  ...dispensable: readonly Dispensable[]
): Promise<T> {
  const secrets = checked(config, ...dispensable);
  const auditKey = secrets === undefined ? {} : { auditKey: secrets.signingKey.key };
  const options = { busyTimeoutMs: BUSY_TIMEOUT_MS, ...auditKey };
  return whileOpen(openDatabase(databasePath(config.dataDir), options), work);
}

async function whileOpen<T>(db: Database, work: (db: Database) => T | Promise<T>): Promise<T> {
  try {
    return await work(db);
  } finally {
    db.close();
  }
}
