import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { ApiError } from '../../domain/errors.ts';

const ROOT = path.join(import.meta.dirname, '../../..');

/** Node's codes for a native part that is absent, or that this system cannot load. */
const UNLOADED = ['MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'];

/** A connection to a SQLite file. @throws Error that says what to do where the package's native part is missing */
export function connectTo(file: string, options: BetterSqlite3.Options): BetterSqlite3.Database {
  try {
    return new BetterSqlite3(file, options);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && UNLOADED.includes(String(error.code)))) throw error;
    const platform = `${process.platform}-${process.arch}`;
    const fault = error.code === 'MODULE_NOT_FOUND' ? 'has no binary for' : 'cannot be loaded on';
    throw new MissingBinary(`better-sqlite3 ${fault} ${platform}: run \`npm ci\` in ${ROOT}.`, { cause: error });
  }
}

class MissingBinary extends Error {
  override readonly name = 'MissingBinary';
}

/** A connection to a SQLite file, set up. SQLite's own messages do not name the file; what this throws does. */
export function openFile(
  file: string,
  options: BetterSqlite3.Options,
  setUp: (connection: BetterSqlite3.Database) => void,
): BetterSqlite3.Database {
  let connection: BetterSqlite3.Database | undefined;
  try {
    connection = connectTo(file, options);
    setUp(connection);
    return connection;
  } catch (error) {
    connection?.close();
    if (error instanceof MissingBinary) throw error;
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}.`, { cause: error });
  }
}

/** The database cannot take or give the data now (busy, disk full, queue full): a 503, and nothing of the operation happened. */
export class StoreUnavailable extends ApiError {
  constructor(cause: unknown) {
    super(503, 'overloaded', 'The service cannot record calls at the moment. Try again.', {
      cause,
      headers: { 'retry-after': '1' },
    });
  }
}

/** The result code that SQLite gave an error; empty: it gave none. */
export const sqliteCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** Another process holds the write lock. */
export const isBusy = (error: unknown): boolean => sqliteCode(error).startsWith('SQLITE_BUSY');

/** Result codes that tell of the machine, not of the statement. */
const MACHINE_TROUBLE = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|NOMEM|PROTOCOL|CORRUPT|NOTADB)/;

/** Returns the error, as `StoreUnavailable` when its cause is the machine. */
export const classify = (error: unknown): unknown =>
  MACHINE_TROUBLE.test(sqliteCode(error)) ? new StoreUnavailable(error) : error;
