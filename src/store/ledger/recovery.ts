import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { budgetValues, CALL_STATES, prepareLedgerStatements } from './ledger-statements.ts';

/**
 * Settles, at start, what a crash left open: every open call counts as dispatched, is booked at its full reservation (none:
 * nothing) and marked `recovered` (src/admin/README.md, "after a crash"). Returns how many there were.
 */
export function recoverOpenCalls(db: Database, now: number): number {
  const { bookCost, bookBudgets, moveMark } = prepareLedgerStatements(db);
  const openFrom = build.selectFrom('ledger_mark').select('openFrom');
  return db.transaction(() => {
    const calls = db.all(
      build.selectFrom('calls').selectAll().where('number', '>=', openFrom).where('state', '=', 'open'),
    );
    db.run(
      build
        .updateTable('ledger')
        .set((row) => ({ state: CALL_STATES.recovered, settledAt: now, cost: row.ref('reservation') }))
        .where('number', '>=', openFrom)
        .where('state', '=', sql.lit(CALL_STATES.open)),
    );
    for (const call of calls) {
      const { reservation, periodStartedAt, keyId, organizationId } = call;
      bookCost.run(reservation, reservation, periodStartedAt, now, keyId, organizationId);
      bookBudgets.run(reservation, reservation, ...budgetValues(call, call));
    }
    moveMark.run();
    return calls.length;
  });
}
