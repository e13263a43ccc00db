import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { prepareLedgerStatements } from './ledger-statements.ts';

/**
 * Settles, at start, what a crash left open: every open call counts as dispatched, is booked at its full reservation (none:
 * nothing) and marked `recovered` (src/admin/README.md, "after a crash"). Returns how many there were.
 */
export function recoverOpenCalls(db: Database, now: number): number {
  const { bookCost, bookBudgets } = prepareLedgerStatements(db);
  return db.transaction(() => {
    const calls = db.all(
      build
        .updateTable('calls')
        .set((row) => ({ state: 'recovered', settled_at: now, cost_pico: row.ref('reservation_pico') }))
        .where('state', '=', sql.lit('open'))
        .returning([
          'organization_id',
          'project_id',
          'member_id',
          'key_id',
          'reservation_pico',
          'period_started_at',
          'member_period_started_at',
          'project_period_started_at',
          'organization_period_started_at',
        ]),
    );
    for (const call of calls) {
      const values = {
        organizationId: call.organization_id,
        projectId: call.project_id,
        memberId: call.member_id,
        keyId: call.key_id,
        cost: call.reservation_pico,
        reservation: call.reservation_pico,
        periodStartedAt: call.period_started_at,
        memberPeriodStartedAt: call.member_period_started_at,
        projectPeriodStartedAt: call.project_period_started_at,
        organizationPeriodStartedAt: call.organization_period_started_at,
        now,
      };
      bookCost.run(values);
      bookBudgets.run(values);
    }
    return calls.length;
  });
}
