import type { Database } from '../db/database.ts';
import { countRows } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { Row, SignInFailuresTable } from '../db/tables.ts';

/** Attempts for one e-mail, by its hash. */
export type SignInFailures = Row<SignInFailuresTable>;

export const findSignInFailures = (db: Database, emailHash: string): SignInFailures | undefined =>
  db.get(build.selectFrom('sign_in_failures').selectAll().where('emailHash', '=', emailHash));

/** Stores the state of one e-mail, in the place of what there was. */
export function putSignInFailures(db: Database, state: SignInFailures): void {
  db.run(
    build
      .insertInto('sign_in_failures')
      .values(state)
      .onConflict((conflict) => conflict.column('emailHash').doUpdateSet(state)),
  );
}

export const countSignInFailures = (db: Database): number => countRows(db, build.selectFrom('sign_in_failures'));

/** Deletes the oldest ones. @param before epoch ms: only those whose window began before. @param limit how many at most */
export function deleteSignInFailures(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_failures')
      .where(
        'emailHash',
        'in',
        build
          .selectFrom('sign_in_failures')
          .select('emailHash')
          .where('windowStartedAt', '<', before)
          .orderBy('windowStartedAt')
          .limit(limit),
      ),
  );
}
