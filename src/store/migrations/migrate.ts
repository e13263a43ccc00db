import { hash } from 'node:crypto';
import type BetterSqlite3 from 'better-sqlite3';
import { MIGRATIONS } from './migrations.ts';

const hasTable = (connection: BetterSqlite3.Database, name: string): boolean =>
  connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

const hasVersionTable = (connection: BetterSqlite3.Database): boolean => hasTable(connection, 'schema_version');

/** How many migrations have been applied. */
export function schemaVersion(connection: BetterSqlite3.Database): number {
  if (!hasVersionTable(connection)) return 0;
  return connection.prepare<[], number>('SELECT count(*) FROM schema_version').pluck().get() ?? 0;
}

/** @throws Error when the tables are of something else, or there are none */
export function assertOurTables(connection: BetterSqlite3.Database): void {
  if (hasVersionTable(connection) && hasTable(connection, 'organizations')) return;
  throw new Error('It is not a database of Portcullis: take another DATA_DIR, or move the file away.');
}

const digestOf = (migration: string): string => hash('sha256', migration);

/** @throws Error when its tables were made by other migrations than ours: those before 0.2.0, or those of a build between two versions */
export function assertOurMigrations(connection: BetterSqlite3.Database): void {
  if (!hasVersionTable(connection)) return;
  const columns = connection.prepare<[], string>("SELECT name FROM pragma_table_info('schema_version')").pluck().all();
  const digests = columns.includes('digest')
    ? connection.prepare<[], string>('SELECT digest FROM schema_version ORDER BY version').pluck().all()
    : [''];
  const isOurs = (digest: string, index: number): boolean =>
    index >= MIGRATIONS.length || digest === digestOf(MIGRATIONS[index] ?? '');
  const [first = ''] = digests;
  if (digests.length > 0 && !isOurs(first, 0)) {
    throw new Error('The database was made before version 0.2.0, and cannot be opened: take another DATA_DIR.');
  }
  if (digests.every(isOurs)) return;
  throw new Error(
    'The database was made by an unreleased version of Portcullis, whose tables differ: take another DATA_DIR, or that version.',
  );
}

/**
 * Applies the migrations that are missing, all in one transaction: a failure leaves the database as it was.
 * @param wanted the version of the schema that is wanted
 */
export function migrate(connection: BetterSqlite3.Database, wanted = MIGRATIONS.length): void {
  connection
    .transaction(() => {
      connection.exec(
        'CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, digest TEXT NOT NULL) STRICT',
      );
      for (let version = schemaVersion(connection); version < wanted; version++) {
        const migration = MIGRATIONS[version] ?? '';
        connection.exec(migration);
        connection
          .prepare('INSERT INTO schema_version VALUES (?, ?, ?)')
          .run(version + 1, Date.now(), digestOf(migration));
      }
    })
    .immediate();
}
