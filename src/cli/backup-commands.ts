import path from 'node:path';
import type { Command } from 'commander';
import manifest from '../../package.json' with { type: 'json' };
import { recordServerChange } from '../admin/audit/audit-trail.ts';
import { type Config, readConfig } from '../config/config.ts';
import { systemClock } from '../domain/time.ts';
import { type BackupManifest, backUp } from '../store/backup/backup.ts';
import { restore } from '../store/backup/restore.ts';
import { createDataDir, withSecretsLocked } from '../store/db/data-dir.ts';
import { MIGRATIONS } from '../store/migrations/migrate.ts';
import { type ProgressBar, print, printJson, progressBar, warn } from './terminal/output.ts';
import { type Environment, whileNobodyServes, withDatabase } from './workspace.ts';

interface BackupOptions {
  readonly withoutSecrets?: true;
  readonly json?: true;
}

interface RestoreOptions {
  readonly force?: boolean;
  readonly json?: true;
}

/** A backup and a restore name the secrets that are missing; those can be put back later. */
const MISSING = ['pepper', 'encryption key'] as const;

const BACKUP_HELP = `
The server need not run, and may: what is copied is the database as it is at one moment. PEPPER and ENCRYPTION_KEY of the
environment are not copied. A folder with secrets.json gives full access: --without-secrets leaves it out.`;

const RESTORE_HELP = `
The database, and secrets.json if the backup has it, are put into DATA_DIR after they were verified; the server must be
stopped. What is there already is moved aside by --force, never overwritten. Calls that were open at the moment of the backup
are recovered when the server starts.`;

/** `portcullis backup` and `portcullis restore`. */
export function backupCommands(program: Command, env: Environment): void {
  program
    .command('backup')
    .argument('<folder>', 'where to; missing or empty')
    .description('Copy the database and the secrets, consistently, while the server is running.')
    .option('--without-secrets', 'leave out secrets.json')
    .option('--json', 'print JSON')
    .addHelpText('after', BACKUP_HELP)
    .action((folder: string, options: BackupOptions) => runBackup(env, path.resolve(folder), options));
  program
    .command('restore')
    .argument('<folder>', 'what `portcullis backup` wrote')
    .description('Verify a backup and put it into DATA_DIR. The server must be stopped.')
    .option('--force', 'move aside what is there')
    .option('--json', 'print JSON')
    .addHelpText('after', RESTORE_HELP)
    .action((folder: string, options: RestoreOptions) => runRestore(env, path.resolve(folder), options));
}

async function withBar<T>(what: string, work: (bar: ProgressBar) => Promise<T>): Promise<T> {
  const bar = progressBar(what);
  try {
    return await work(bar);
  } finally {
    bar.end();
  }
}

async function runBackup(env: Environment, folder: string, { withoutSecrets, json }: BackupOptions): Promise<void> {
  const config = readConfig(env);
  const { dataDir, secrets: given } = config;
  const withSecrets = withoutSecrets !== true;
  const { manifest: written, missing } = await withBar('Pages', ({ show }) =>
    withDatabase(
      config,
      // A rotation in the middle would leave a snapshot that the secrets copied after it do not open.
      (db) =>
        withSecretsLocked(dataDir, () =>
          backUp(db, {
            dataDir,
            folder,
            withSecrets,
            given,
            now: systemClock.now(),
            version: manifest.version,
            progress: show,
          }),
        ),
      ...(withSecrets ? [] : MISSING),
    ),
  );
  if (json) printJson({ backup: written });
  else print(`Backed up to ${folder}: ${written.pageCount} pages, ${written.bytes} bytes.`);
  warnOf(missing);
  if (given.peppers.length > 0) warn('PEPPER is given by the environment and is not in the backup: keep it elsewhere.');
  if (given.encryptionKeys.length > 0) {
    warn('ENCRYPTION_KEY is given by the environment and is not in the backup: keep it elsewhere.');
  }
}

async function runRestore(env: Environment, folder: string, { force = false, json }: RestoreOptions): Promise<void> {
  createDataDir(readConfig(env).dataDir);
  const {
    manifest: restored,
    replaced,
    missing,
  } = await whileNobodyServes(env, async (config) => {
    const { dataDir, secrets: given } = config;
    const done = await withBar('Bytes', ({ show }) =>
      restore({ folder, dataDir, given, force, now: systemClock.now(), progress: show }),
    );
    await noteRestore(config, done.manifest).catch((error: unknown) =>
      warn(
        `that it was restored could not be noted in the audit log: ${error instanceof Error ? error.message : error}`,
      ),
    );
    return done;
  });
  if (json) printJson({ backup: restored, replaced: replaced ?? null });
  else {
    print(`Restored the database of ${restored.createdAt}.`);
    if (replaced !== undefined) print(`The previous files are in ${replaced} now.`);
  }
  warnOf(missing);
}

/** A reader of the audit log must learn that its end was cut off. A database of an earlier version is not written to before it is brought up to date. */
async function noteRestore(config: Config, { sha256, createdAt, schemaVersion }: BackupManifest): Promise<void> {
  if (schemaVersion !== MIGRATIONS.length) {
    warn('the backup is of an earlier version: that it was restored is not in the audit log.');
    return;
  }
  const backup = { id: sha256, createdAt };
  await withDatabase(
    config,
    (db) => recordServerChange(db, 'database', 'restore', { before: null, after: backup }, systemClock.now()),
    ...MISSING,
  );
}

function warnOf(missing: readonly string[]): void {
  if (missing.length > 0) warn(`keys need secrets that are missing, and cannot be used: ${missing.join(', ')}.`);
}
