import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { SignInFailuresTable } from '../db/tables.ts';

/** Attempts for one e-mail, by its hash. Times in epoch ms. */
export interface SignInFailures {
  readonly emailHash: string;
  readonly failures: number;
  readonly windowStartedAt: number;
  readonly lockedUntil: number | null;
}

const toFailures = (row: Selectable<SignInFailuresTable>): SignInFailures => ({
  emailHash: row.email_hash,
  failures: row.failures,
  windowStartedAt: row.window_started_at,
  lockedUntil: row.locked_until,
});

export function findSignInFailures(db: Database, emailHash: string): SignInFailures | undefined {
  const row = db.get(build.selectFrom('sign_in_failures').selectAll().where('email_hash', '=', emailHash));
  return row === undefined ? undefined : toFailures(row);
}

/** Stores the state of one e-mail, in the place of what there was. */
export function putSignInFailures(db: Database, state: SignInFailures): void {
  const row = {
    failures: state.failures,
    window_started_at: state.windowStartedAt,
    locked_until: state.lockedUntil,
  };
  db.run(
    build
      .insertInto('sign_in_failures')
      .values({ email_hash: state.emailHash, ...row })
      .onConflict((conflict) => conflict.column('email_hash').doUpdateSet(row)),
  );
}

export const countSignInFailures = (db: Database): number =>
  db.get(build.selectFrom('sign_in_failures').select((row) => row.fn.countAll<number>().as('count')))?.count ?? 0;

/** Deletes the oldest ones. @param before epoch ms: only those whose window began before. @param limit how many at most */
export function deleteSignInFailures(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_failures')
      .where(
        'email_hash',
        'in',
        build
          .selectFrom('sign_in_failures')
          .select('email_hash')
          .where('window_started_at', '<', before)
          .orderBy('window_started_at')
          .limit(limit),
      ),
  );
}
