import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type BetterSqlite3 from 'better-sqlite3';
import { formatTime } from '../../domain/time.ts';
import { isKeyOfChain } from '../audit/audit-entries.ts';
import { databasePath, syncFolder } from '../db/data-dir.ts';
import { openFile } from '../db/sqlite-file.ts';
import { assertOurMigrations, assertOurTables } from '../migrations/migrate.ts';
import {
  type GivenSecrets,
  missingSecrets,
  readSecretNeeds,
  readSecretsFile,
  type SecretsFile,
  secretsOf,
  secretsPath,
  writeSecretsFile,
} from '../secrets/secrets.ts';
import { type BackupManifest, backupDatabasePath, readManifest } from './backup.ts';
import { readerOf } from './check-data-dir.ts';

export interface RestoreOptions {
  readonly folder: string;
  /** Exists, and no server runs on it: the caller holds its lock. */
  readonly dataDir: string;
  readonly given: GivenSecrets;
  /** Moves aside what is there. */
  readonly force: boolean;
  /** Epoch ms. */
  readonly now: number;
  readonly progress: (done: number, all: number) => void;
}

interface RestoreResult {
  readonly manifest: BackupManifest;
  /** Place to which the earlier files were moved; undefined: there were none. */
  readonly replaced: string | undefined;
  /** Secrets that the database needs and nobody has, in words. */
  readonly missing: readonly string[];
}

/**
 * Puts a backup in the place of a database. It is copied next to its place and verified there (digest, SQLite's own check,
 * schema); only then is anything moved. @throws Error when it is damaged or does not fit, with nothing changed
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { folder, dataDir, force, now } = options;
  const manifest = readManifest(folder);
  const target = databasePath(dataDir);
  if (existsSync(target) && !force) {
    throw new Error(`There is a database at ${target}: take another DATA_DIR, or move it aside with --force.`);
  }
  const secrets = chooseSecrets(manifest, options);
  const copy = `${target}.restored`;
  try {
    const digest = await copyFile(backupDatabasePath(folder), copy, manifest, options.progress);
    if (digest !== manifest.sha256) throw new Error(`${backupDatabasePath(folder)} is damaged: its digest differs.`);
    const missing = checkDatabase(copy, secrets, options);
    const replaced = moveAside(dataDir, secrets.isNew, now);
    if (secrets.isNew) writeSecretsFile(secretsPath(dataDir), secrets.file);
    renameSync(copy, target);
    syncFolder(dataDir);
    return { manifest, replaced, missing };
  } finally {
    rmSync(copy, { force: true });
  }
}

interface ChosenSecrets {
  readonly file: SecretsFile;
  /** They come from the backup and are not yet in the data directory. */
  readonly isNew: boolean;
}

function chooseSecrets(manifest: BackupManifest, { folder, dataDir, force }: RestoreOptions): ChosenSecrets {
  const path = secretsPath(dataDir);
  const present = existsSync(path) ? readSecretsFile(path) : undefined;
  if (!manifest.secrets) {
    if (present === undefined) throw new Error(`The backup holds no secrets: put the server's at ${path} first.`);
    return { file: present, isNew: false };
  }
  const file = readSecretsFile(secretsPath(folder));
  if (present === undefined) return { file, isNew: true };
  if (readFileSync(path, 'utf8') === readFileSync(secretsPath(folder), 'utf8')) return { file, isNew: false };
  if (!force) throw new Error(`There are other secrets at ${path}: move them aside with --force.`);
  return { file, isNew: true };
}

/** The digest of what was copied. */
async function copyFile(
  from: string,
  to: string,
  { bytes }: BackupManifest,
  progress: RestoreOptions['progress'],
): Promise<string> {
  const hash = createHash('sha256');
  let done = 0;
  const watch = new Transform({
    transform(piece: Buffer, _encoding, next) {
      hash.update(piece);
      done += piece.length;
      progress(done, bytes);
      next(null, piece);
    },
  });
  await pipeline(createReadStream(from), watch, createWriteStream(to, { mode: 0o600, flush: true }));
  return hash.digest('hex');
}

/**
 * The secrets that the copy of a backup needs and nobody has. @throws Error that names the backup when it is damaged, of a version
 * that this one cannot open, or of another installation than the secrets
 */
function checkDatabase(file: string, secrets: ChosenSecrets, { folder, given, now }: RestoreOptions): string[] {
  const backup = backupDatabasePath(folder);
  const connection = openFile(file, {}, () => {});
  try {
    assertIntact(connection, backup);
    assertOurTables(connection, backup);
    assertOurMigrations(connection, backup);
    const db = readerOf(connection);
    const accepted = secretsOf(secrets.file, given);
    if (!isKeyOfChain(db, accepted.signingKey.key)) {
      throw new Error(`${backup} is of another installation: its audit log was written under another signing key.`);
    }
    return missingSecrets(readSecretNeeds(db, now), accepted);
  } finally {
    connection.close();
  }
}

function assertIntact(connection: BetterSqlite3.Database, backup: string): void {
  let verdict: unknown;
  try {
    verdict = connection.pragma('integrity_check(1)', { simple: true });
  } catch (error) {
    verdict = error instanceof Error ? error.message : error;
  }
  if (verdict !== 'ok') throw new Error(`${backup} is damaged: ${String(verdict)}.`);
}

/** The log first: a database without it would be an older one, it without the database is nothing. */
function moveAside(dataDir: string, withSecrets: boolean, now: number): string | undefined {
  const database = databasePath(dataDir);
  const files = [`${database}-wal`, `${database}-shm`, database, ...(withSecrets ? [secretsPath(dataDir)] : [])];
  const present = files.filter((file) => existsSync(file));
  if (present.length === 0) return undefined;
  const aside = join(dataDir, `replaced-${formatTime(now).replaceAll(/[:.]/g, '-')}`);
  mkdirSync(aside, { mode: 0o700 });
  for (const file of present) renameSync(file, join(aside, basename(file)));
  syncFolder(aside);
  return aside;
}
