import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { budgetValues, CALL_STATES, prepareLedgerStatements } from './ledger-statements.ts';

/**
 * Settles, at start, what a crash left open: every open call counts as dispatched, is booked at its full reservation (none:
 * nothing) and marked `recovered` (src/admin/README.md, "after a crash"). Returns how many there were.
 */
export function recoverOpenCalls(db: Database, now: number): number {
  const { bookCost, bookBudgets, bookShared, moveMark } = prepareLedgerStatements(db);
  const openFrom = build.selectFrom('ledger_mark').select('openFrom');
  return db.transaction(() => {
    const calls = db.all(
      build
        .selectFrom('calls')
        .innerJoin('ledger', 'ledger.number', 'calls.number')
        .innerJoin('keys', 'keys.id', 'calls.keyId')
        .selectAll('calls')
        .select(['ledger.sharedPeriodStartedAt', 'keys.sharesLimitsOf'])
        .where('calls.number', '>=', openFrom)
        .where('calls.state', '=', 'open'),
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
      const { sharesLimitsOf, sharedPeriodStartedAt } = call;
      if (sharesLimitsOf !== null) {
        bookShared.run(reservation, reservation, sharedPeriodStartedAt, sharesLimitsOf, organizationId);
      }
    }
    moveMark.run();
    return calls.length;
  });
}
