import { ApiError } from '../../domain/errors.ts';

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

/** The same error, as `StoreUnavailable` when it tells of the machine. */
export const classify = (error: unknown): unknown =>
  MACHINE_TROUBLE.test(sqliteCode(error)) ? new StoreUnavailable(error) : error;
