import { usdNumber } from '../../src/domain/money.ts';
import { type LimitScope, runningPeriod, type SpendState } from '../../src/domain/spend-limits.ts';
import { toBudget } from '../../src/store/budgets.ts';
import type { Database } from '../../src/store/database.ts';
import { toApiKey } from '../../src/store/key-columns.ts';
import { build } from '../../src/store/sql.ts';
import type { Acknowledged } from './load.ts';

/** What was seen of the calls of some keys. */
export interface Evidence {
  readonly keyIds: readonly string[];
  readonly acknowledged: readonly Acknowledged[];
  /** Calls, by their clients' names, that reached the upstream. */
  readonly dispatched: ReadonlySet<string>;
}

export interface Counts {
  readonly settled: number;
  readonly recovered: number;
}

class Faults {
  readonly found: string[] = [];

  check(holds: boolean, fault: string): void {
    if (!holds) this.found.push(fault);
  }
}

const rowsOf = (db: Database, keyIds: readonly string[]) =>
  db.all(
    build
      .selectFrom('calls')
      .selectAll()
      .where('key_id', 'in', [...keyIds]),
  );

type Row = ReturnType<typeof rowsOf>[number];

const sum = (rows: readonly Row[], amount: (row: Row) => bigint): bigint =>
  rows.reduce((total, row) => total + amount(row), 0n);

const costOf = (row: Row): bigint => row.cost_pico;
const heldBy = (row: Row): bigint => (row.state === 'open' ? row.reservation_pico : 0n);

/** What is broken of what must hold at every moment, calls running or not: sums are those of the rows, and within the limits. */
export function findLedgerFaults(db: Database, keyIds: readonly string[]): string[] {
  const faults = new Faults();
  // One snapshot, for others write meanwhile.
  db.connection
    .transaction(() => {
      const byKey = Map.groupBy(rowsOf(db, keyIds), (row) => row.key_id);
      for (const row of db.all(
        build
          .selectFrom('keys')
          .selectAll()
          .where('id', 'in', [...keyIds]),
      )) {
        checkLimits(faults, 'key', row.id, toApiKey(row), byKey.get(row.id) ?? []);
      }
      const rows = db.all(build.selectFrom('calls').selectAll());
      for (const budget of db.all(build.selectFrom('budgets').selectAll()).map(toBudget)) {
        const { scope, subjectId } = budget;
        const under = rows.filter((row) => row[COLUMNS[scope].subject] === subjectId);
        checkLimits(faults, scope, subjectId, budget, under);
      }
    })
    .deferred();
  return faults.found;
}

const COLUMNS = {
  key: { subject: 'key_id', window: 'period_started_at' },
  member: { subject: 'member_id', window: 'member_period_started_at' },
  project: { subject: 'project_id', window: 'project_period_started_at' },
  organization: { subject: 'organization_id', window: 'organization_period_started_at' },
} as const;

function checkLimits(faults: Faults, scope: LimitScope, id: string, of: SpendState, rows: readonly Row[]): void {
  const startedAt = of.currentPeriodStartedAt;
  const inWindow = startedAt === null ? [] : rows.filter((row) => row[COLUMNS[scope].window] === startedAt);
  const agree = (name: string, kept: bigint, counted: bigint): void =>
    faults.check(kept === counted, `sums equal the rows: ${id} has ${name} ${kept}, its rows ${counted}`);
  agree('usage', of.usage, sum(rows, costOf));
  agree('reserved', of.reserved, sum(rows, heldBy));
  agree('current period usage', of.currentPeriodUsage, sum(inWindow, costOf));
  agree('current period reserved', of.currentPeriodReserved, sum(inWindow, heldBy));
  const within = (name: string, limit: bigint | null, spent: bigint): void =>
    faults.check(limit === null || spent <= limit, `nobody is over a ${name} cap: ${id} by ${spent - (limit ?? 0n)}`);
  within('all-time', of.usageLimit, of.usage + of.reserved);
  const period = runningPeriod(of, Date.now());
  if (period !== undefined) within('recurring', of.periodUsageLimit, period.usage + of.currentPeriodReserved);
}

/** What is broken of what must hold when no call is running; nothing when all holds. */
export function findFaults(db: Database, evidence: Evidence): [faults: string[], counts: Counts] {
  const { keyIds, acknowledged, dispatched } = evidence;
  const faults = new Faults();
  const open = db.all(build.selectFrom('calls').select('id').where('state', '=', 'open'));
  faults.check(open.length === 0, `no row stays open: ${open.length} do`);

  const rows = rowsOf(db, keyIds);
  const byClient = Map.groupBy(rows, (row) => row.client_request_id ?? '');
  for (const [clientId, ofClient] of byClient) {
    faults.check(ofClient.length === 1, `every call has one row: ${clientId} has ${ofClient.length}`);
  }
  for (const clientId of dispatched) {
    faults.check(byClient.has(clientId), `what reached the upstream has a row: ${clientId} has none`);
  }
  for (const { clientId, callId, keyId, cost } of acknowledged) {
    const [row] = byClient.get(clientId) ?? [];
    const found = row && `${row.id} ${row.state} ${usdNumber(row.cost_pico)} ${row.key_id}`;
    const wanted = `${callId} settled ${cost} ${keyId}`;
    faults.check(
      found === wanted,
      `an acknowledged call is settled at what was answered: ${clientId} is ${found}, not ${wanted}`,
    );
  }
  const recovered = rows.filter(({ state }) => state === 'recovered');
  for (const row of recovered) {
    faults.check(row.cost_pico === row.reservation_pico, `a recovered call costs its reservation: ${row.id}`);
  }
  const settled = rows.filter(({ state }) => state === 'settled').length;
  return [[...faults.found, ...findLedgerFaults(db, keyIds)], { settled, recovered: recovered.length }];
}
