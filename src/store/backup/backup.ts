import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type BetterSqlite3 from 'better-sqlite3';
import { formatTime } from '../../domain/time.ts';
import { makeFolders } from '../../lib/files.ts';
import { writeDurably } from '../db/data-dir.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { schemaVersion } from '../migrations/migrate.ts';
import {
  type GivenSecrets,
  missingSecrets,
  readSecretNeeds,
  readSecretsFile,
  type SecretNeeds,
  secretsOf,
  secretsPath,
  writeSecretsFile,
} from '../secrets/secrets.ts';

/** Content of a backup's `manifest.json`, which is written last: a folder without it is not a backup. */
export interface BackupManifest {
  readonly format: 1;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Version of Portcullis. */
  readonly version: string;
  readonly schemaVersion: number;
  readonly pageCount: number;
  readonly bytes: number;
  /** SHA-256 of the database, in hex. */
  readonly sha256: string;
  /** Whether `secrets.json` is there. */
  readonly secrets: boolean;
}

export interface BackupOptions {
  readonly dataDir: string;
  /** Missing or empty. */
  readonly folder: string;
  readonly withSecrets: boolean;
  readonly given: GivenSecrets;
  /** Epoch ms. */
  readonly now: number;
  /** Version of Portcullis. */
  readonly version: string;
  readonly progress: (done: number, all: number) => void;
}

export const backupDatabasePath = (folder: string): string => join(folder, 'portcullis.sqlite');
const manifestPath = (folder: string): string => join(folder, 'manifest.json');

export interface WrittenBackup {
  readonly manifest: BackupManifest;
  /** Secrets that the database needs and nobody has, in words. */
  readonly missing: readonly string[];
}

/**
 * Writes a snapshot of the database, and the server's secrets, into a folder that its owner alone reads. A server may go on
 * writing meanwhile. @throws Error when the folder holds anything
 */
export async function backUp(db: Database, options: BackupOptions): Promise<WrittenBackup> {
  const { dataDir, folder, withSecrets, given, now, version, progress } = options;
  const isOurs = prepareFolder(folder);
  try {
    const file = backupDatabasePath(folder);
    await copySnapshot(db.connection, file, progress);
    const { needs, ...database } = inspectSnapshot(file, now);
    // After the snapshot: a pepper that was made meanwhile is then there too.
    const secrets = readSecretsFile(secretsPath(dataDir));
    if (withSecrets) writeSecretsFile(secretsPath(folder), secrets);
    const bytes = statSync(file).size;
    const sha256 = await digestOf(file);
    const createdAt = formatTime(now);
    const manifest = { format: 1, createdAt, version, ...database, bytes, sha256, secrets: withSecrets } as const;
    writeDurably(manifestPath(folder), `${JSON.stringify(manifest, null, 2)}\n`);
    return { manifest, missing: missingSecrets(needs, secretsOf(secrets, given)) };
  } catch (error) {
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    if (isOurs) rmSync(folder, { recursive: true });
    throw error;
  }
}

/** Whether it was made here. */
function prepareFolder(folder: string): boolean {
  if (!existsSync(folder)) {
    makeFolders(folder, 0o700);
    return true;
  }
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty: a backup overwrites nothing.`);
  return false;
}

const PAGES_A_STEP = 2000;

/**
 * In steps, so that there is something to show; as the read transaction is held open all are of one snapshot, and writers of
 * other connections do not make it begin again.
 */
async function copySnapshot(
  connection: BetterSqlite3.Database,
  file: string,
  progress: BackupOptions['progress'],
): Promise<void> {
  closeSync(openSync(file, 'wx', 0o600)); // SQLite would let others read it.
  connection.exec('BEGIN');
  try {
    connection.prepare('SELECT count(*) FROM sqlite_schema').get();
    await connection.backup(file, {
      progress: ({ totalPages, remainingPages }) => {
        if (totalPages > 0) progress(totalPages - remainingPages, totalPages);
        return PAGES_A_STEP;
      },
    });
  } finally {
    connection.exec('COMMIT');
  }
}

/** Makes the snapshot one plain file, without a log next to it, and says what is in it. */
function inspectSnapshot(file: string, now: number): { schemaVersion: number; pageCount: number; needs: SecretNeeds } {
  const db = openDatabase(file);
  try {
    const pageCount = Number(db.connection.pragma('page_count', { simple: true }));
    const inside = { schemaVersion: schemaVersion(db.connection), pageCount, needs: readSecretNeeds(db, now) };
    db.connection.pragma('journal_mode = DELETE');
    return inside;
  } finally {
    db.close();
  }
}

/** SHA-256 of a file, in hex. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** @throws Error when the folder holds no whole backup, or one of another format */
export function readManifest(folder: string): BackupManifest {
  const path = manifestPath(folder);
  if (!existsSync(path)) throw new Error(`${folder} holds no finished backup: there is no manifest.json.`);
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (!isManifest(manifest)) throw new Error(`${path} is not the manifest of a backup that this version understands.`);
  return manifest;
}

function isManifest(value: unknown): value is BackupManifest {
  if (typeof value !== 'object' || value === null) return false;
  if (!('format' in value && 'sha256' in value && 'schemaVersion' in value && 'secrets' in value)) return false;
  const { format, sha256, schemaVersion: version, secrets } = value;
  return format === 1 && typeof sha256 === 'string' && typeof version === 'number' && typeof secrets === 'boolean';
}
