import { statSync } from 'node:fs';
import type BetterSqlite3 from 'better-sqlite3';
import type { Database } from '../db/database.ts';
import { connectTo } from '../db/open-file.ts';
import { prepare } from '../db/sql.ts';
import { sqliteCode } from '../db/unavailable.ts';
import { columnNames, NEW_NAMES } from '../migrations/0012-column-names.ts';
import { assertOurMigrations, assertOurTables, schemaVersion } from '../migrations/migrate.ts';
import { MIGRATIONS } from '../migrations/migrations.ts';

/** Reads from a database that may be of an earlier version. */
export type DatabaseReader = Pick<Database, 'all' | 'get'>;

/** Above this, pages are not read one by one: what is damaged there is found when it is needed. 64 MB take 0.1 s. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;
const BUSY_TIMEOUT_MS = 5000;

const REMEDY = 'Restore a backup (portcullis restore <folder> --force), or take another DATA_DIR.';

/**
 * Runs `work` on a database file that is whole and ours, and changes nothing, also where it is not.
 * @throws Error that names the file and says what to do, when it is empty, cut off, damaged, or of something else
 */
export function inspectDatabase<T>(path: string, work: (db: DatabaseReader) => T): T {
  if (sizeOf(path) === 0) throw new Error(`${path} is empty: it holds no database. ${REMEDY}`);
  // The last one to close a connection that can write moves the log into the file.
  const readonly = sizeOf(`${path}-wal`) > 0 || sizeOf(`${path}-journal`) > 0;
  const connection = explaining(path, () => {
    return connectTo(path, { readonly, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  });
  try {
    return explaining(path, () => {
      assertWhole(connection, path);
      assertOurs(connection, path);
      return work(readerOf(connection));
    });
  } finally {
    connection.close();
  }
}

export function readerOf(connection: BetterSqlite3.Database): DatabaseReader {
  if (schemaVersion(connection) <= MIGRATIONS.indexOf(columnNames)) showNewNames(connection);
  return {
    all: (query) => prepare(connection, query.compile()).all({}),
    get: (query) => prepare(connection, query.compile()).get({}),
  };
}

/** For this connection alone: views in the place of the tables, with the names that columns have now. */
function showNewNames(connection: BetterSqlite3.Database): void {
  const tables = connection
    .prepare<[], string>("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck();
  const columns = connection.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  for (const table of tables.all()) {
    const named = columns.all(table).map((name) => `${name} AS ${NEW_NAMES.get(name) ?? name}`);
    connection.exec(`CREATE TEMP VIEW ${table} AS SELECT ${named.join(', ')} FROM main.${table}`);
  }
}

/** In bytes; 0 for what is not there. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** SQLite's own messages neither name the file nor say what to do. */
function explaining<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error) || sqliteCode(error) === '') throw error;
    const isUnfit = /^SQLITE_(CORRUPT|NOTADB|CANTOPEN|IOERR)/.test(sqliteCode(error));
    throw new Error(`${path}: ${error.message}.${isUnfit ? ` ${REMEDY}` : ''}`, { cause: error });
  }
}

function assertWhole(connection: BetterSqlite3.Database, path: string): void {
  const pages = Number(connection.pragma('page_count', { simple: true }));
  if (pages * Number(connection.pragma('page_size', { simple: true })) > MAX_CHECKED_BYTES) return;
  const verdict = String(connection.pragma('quick_check(1)', { simple: true }));
  if (verdict === 'ok') return;
  throw new Error(`${path} is damaged: ${verdict.replace(/^\*{3}.*\*{3}\n/, '').replaceAll('\n', ' ')}. ${REMEDY}`);
}

function assertOurs(connection: BetterSqlite3.Database, path: string): void {
  try {
    assertOurTables(connection);
    assertOurMigrations(connection);
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  const version = schemaVersion(connection);
  if (version <= MIGRATIONS.length) return;
  throw new Error(
    `${path}: The database has schema version ${version}, this version of Portcullis needs ${MIGRATIONS.length}: use the newer version of Portcullis that made it.`,
  );
}
