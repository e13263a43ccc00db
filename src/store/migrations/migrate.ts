import { hash } from 'node:crypto';
import type BetterSqlite3 from 'better-sqlite3';
import { initial } from './0001-initial.ts';
import { seals } from './0002-seals.ts';

/**
 * Every migration, in order; the version of a schema is the number of those applied. Never change one that was released: a database
 * contains the digest of each migration that made it.
 */
export const MIGRATIONS: readonly string[] = [initial, seals];

const hasTable = (connection: BetterSqlite3.Database, name: string): boolean =>
  connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

const hasVersionTable = (connection: BetterSqlite3.Database): boolean => hasTable(connection, 'schema_version');

/** Counts the migrations that have been applied. */
export function schemaVersion(connection: BetterSqlite3.Database): number {
  if (!hasVersionTable(connection)) return 0;
  return connection.prepare<[], number>('SELECT count(*) FROM schema_version').pluck().get() ?? 0;
}

/** @throws Error when the tables are of another program, or there are none. @param file names the database in the message */
export function assertOurTables(connection: BetterSqlite3.Database, file: string): void {
  if (hasVersionTable(connection) && hasTable(connection, 'organizations')) return;
  throw new Error(`${file} is not a database of Portcullis: take another DATA_DIR, or move the file away.`);
}

const digestOf = (migration: string): string => hash('sha256', migration);

/**
 * @throws Error when the database was made by other migrations than ours (before version 0.2.0, or between two versions) or by more
 * @param file names the database in the message
 */
export function assertOurMigrations(connection: BetterSqlite3.Database, file: string): void {
  if (!hasVersionTable(connection)) return;
  const columns = connection.prepare<[], string>("SELECT name FROM pragma_table_info('schema_version')").pluck().all();
  const digests = columns.includes('digest')
    ? connection.prepare<[], string>('SELECT digest FROM schema_version ORDER BY version').pluck().all()
    : [''];
  if (MIGRATIONS.some((migration, index) => (digests[index] ?? digestOf(migration)) !== digestOf(migration))) {
    throw new Error(
      `${file} was made by a version of Portcullis before 0.2.0, or by an unreleased one, and cannot be opened: use the version that made it, or another DATA_DIR.`,
    );
  }
  if (digests.length <= MIGRATIONS.length) return;
  throw new Error(
    `${file} has schema version ${digests.length}, this version of Portcullis knows ${MIGRATIONS.length}: use the newer version that made it.`,
  );
}

/** Applies the migrations that are missing, all in one transaction: a failure leaves the database as it was. */
export function migrate(connection: BetterSqlite3.Database, migrations = MIGRATIONS): void {
  connection
    .transaction(() => {
      connection.exec(
        'CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, digest TEXT NOT NULL) STRICT',
      );
      const applied = schemaVersion(connection);
      const note = connection.prepare('INSERT INTO schema_version VALUES (?, ?, ?)');
      for (const [index, migration] of migrations.slice(applied).entries()) {
        connection.exec(migration);
        note.run(applied + index + 1, Date.now(), digestOf(migration));
      }
    })
    .immediate();
}
