import BetterSqlite3 from 'better-sqlite3';

/** A connection to a SQLite file, set up. SQLite's own messages do not name the file; what this throws does. */
export function openFile(
  path: string,
  options: BetterSqlite3.Options,
  setUp: (connection: BetterSqlite3.Database) => void,
): BetterSqlite3.Database {
  let connection: BetterSqlite3.Database | undefined;
  try {
    connection = new BetterSqlite3(path, options);
    setUp(connection);
    return connection;
  } catch (error) {
    connection?.close();
    throw new Error(`${path}: ${error instanceof Error ? error.message : String(error)}.`, { cause: error });
  }
}
