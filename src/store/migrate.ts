import type BetterSqlite3 from 'better-sqlite3';
import { MIGRATIONS } from './migrations/migrations.ts';

const hasVersionTable = (connection: BetterSqlite3.Database): boolean =>
  connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").get() !== undefined;

/** How many migrations have been applied. */
export function schemaVersion(connection: BetterSqlite3.Database): number {
  if (!hasVersionTable(connection)) return 0;
  return connection.prepare<[], number>('SELECT count(*) FROM schema_version').pluck().get() ?? 0;
}

/** Applies the migrations that are missing, all in one transaction: a failure leaves the database as it was. */
export function migrate(connection: BetterSqlite3.Database): void {
  connection
    .transaction(() => {
      connection.exec(
        'CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT',
      );
      for (let version = schemaVersion(connection); version < MIGRATIONS.length; version++) {
        connection.exec(MIGRATIONS[version] ?? '');
        connection.prepare('INSERT INTO schema_version VALUES (?, ?)').run(version + 1, Date.now());
      }
    })
    .immediate();
}
