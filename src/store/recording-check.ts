import type { Clock } from '../domain/time.ts';
import type { Store } from './store.ts';

/** Anyone may ask: more often than this, they get the last answer. */
const VALID_FOR_MS = 1000;

/** Whether a call could be recorded now: true, unless the database does not take a write (disk full, read-only, locked). */
export type CanRecord = () => Promise<boolean>;

/** Tries a write that changes nothing, at most once a second. */
export function createRecordingCheck(store: Pick<Store, 'write'>, clock: Clock): CanRecord {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let answer = Promise.resolve(true);
  return () => {
    if (clock.now() - checkedAt < VALID_FOR_MS) return answer;
    checkedAt = clock.now();
    // SQLite writes its first page for this, even where the number stays the same.
    answer = store
      .write((db) => db.connection.pragma('user_version = 0'))
      .then(
        () => true,
        () => false,
      );
    return answer;
  };
}
