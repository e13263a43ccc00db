import { type BudgetScope, MAX_AMOUNT, runningPeriod, type SpendState, usdNumber } from '../../src/domain/limits.ts';
import type { Database } from '../../src/store/db/database.ts';
import { build, exactSum, sumOf } from '../../src/store/db/sql.ts';
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
      .where('keyId', 'in', [...keyIds]),
  );

/** The columns of a call that say who has a limit, and in which window of it the call was opened. */
const COLUMNS = {
  key: { subject: 'keyId', window: 'periodStartedAt' },
  member: { subject: 'memberId', window: 'memberPeriodStartedAt' },
  project: { subject: 'projectId', window: 'projectPeriodStartedAt' },
  organization: { subject: 'organizationId', window: 'organizationPeriodStartedAt' },
} as const;

interface Sums {
  readonly windowStartedAt: number | null;
  readonly cost: bigint;
  readonly held: bigint;
}

/** What the calls under each subject have cost in each of its windows, and what is held back for those that run. */
function sumsOf(db: Database, scope: BudgetScope | 'key', subjectIds: readonly string[]): Map<string, Sums[]> {
  const { subject, window } = COLUMNS[scope];
  const rows = db.all(
    build
      .selectFrom('calls')
      .select([subject, window, 'state', ...exactSum('cost', 'cost'), ...exactSum('reservation', 'held')])
      .where(subject, 'in', [...subjectIds])
      .groupBy([subject, window, 'state']),
  );
  const sums = new Map<string, Sums[]>(subjectIds.map((id) => [id, []]));
  for (const row of rows) {
    sums.get(row[subject])?.push({
      windowStartedAt: row[window],
      cost: sumOf(row.costHigh, row.costLow),
      held: row.state === 'open' ? sumOf(row.heldHigh, row.heldLow) : 0n,
    });
  }
  return sums;
}

const total = (sums: readonly Sums[], amount: 'cost' | 'held'): bigint =>
  sums.reduce((all, each) => all + each[amount], 0n);

/**
 * What is broken of what must hold at every moment, calls running or not: the sums of these keys and of all budgets are those of the
 * rows, and within the limits.
 * @param isOvercharged whether upstreams may have charged a key, or what has a budget, more than they may: its limits are not checked
 */
export function findLedgerFaults(
  db: Database,
  keyIds: readonly string[],
  isOvercharged: (id: string) => boolean = () => false,
): string[] {
  const faults = new Faults();
  const check = (scope: BudgetScope | 'key', limited: ReadonlyMap<string, SpendState>): void => {
    for (const [id, sums] of sumsOf(db, scope, [...limited.keys()])) {
      const of = limited.get(id);
      if (of === undefined) continue;
      checkSums(faults, id, of, sums);
      if (!isOvercharged(id)) checkLimits(faults, id, of);
    }
  };
  // One snapshot, for others write meanwhile.
  db.connection
    .transaction(() => {
      const keys = build
        .selectFrom('keys')
        .selectAll()
        .where('id', 'in', [...keyIds]);
      check('key', new Map(db.all(keys).map((row) => [row.id, row])));
      const budgets = db.all(build.selectFrom('budgets').selectAll());
      for (const [scope, ofScope] of Map.groupBy(budgets, (budget) => budget.scope))
        check(scope, new Map(ofScope.map((budget) => [budget.subjectId, budget])));
    })
    .deferred();
  return faults.found;
}

function checkSums(faults: Faults, id: string, of: SpendState, sums: readonly Sums[]): void {
  const startedAt = of.currentPeriodStartedAt;
  const inWindow = startedAt === null ? [] : sums.filter((each) => each.windowStartedAt === startedAt);
  const agree = (name: string, kept: bigint, counted: bigint): void => {
    // The largest amount that is kept: an upstream that lies can take a sum there.
    const wanted = counted > MAX_AMOUNT ? MAX_AMOUNT : counted;
    faults.check(kept === wanted, `sums equal the rows: ${id} has ${name} ${kept}, its rows ${counted}`);
  };
  agree('usage', of.usage, total(sums, 'cost'));
  agree('reserved', of.reserved, total(sums, 'held'));
  agree('current period usage', of.currentPeriodUsage, total(inWindow, 'cost'));
  agree('current period reserved', of.currentPeriodReserved, total(inWindow, 'held'));
}

function checkLimits(faults: Faults, id: string, of: SpendState): void {
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
  const byClient = Map.groupBy(rows, (row) => row.clientRequestId ?? '');
  for (const [clientId, ofClient] of byClient) {
    faults.check(ofClient.length === 1, `every call has one row: ${clientId} has ${ofClient.length}`);
  }
  for (const clientId of dispatched) {
    faults.check(byClient.has(clientId), `what reached the upstream has a row: ${clientId} has none`);
  }
  for (const { clientId, callId, keyId, cost } of acknowledged) {
    const [row] = byClient.get(clientId) ?? [];
    const found = row && `${row.id} ${row.state} ${usdNumber(row.cost)} ${row.keyId}`;
    const wanted = `${callId} settled ${cost} ${keyId}`;
    faults.check(
      found === wanted,
      `an acknowledged call is settled at what was answered: ${clientId} is ${found}, not ${wanted}`,
    );
  }
  const recovered = rows.filter(({ state }) => state === 'recovered');
  for (const row of recovered) {
    faults.check(row.cost === row.reservation, `a recovered call costs its reservation: ${row.id}`);
  }
  const settled = rows.filter(({ state }) => state === 'settled').length;
  return [[...faults.found, ...findLedgerFaults(db, keyIds)], { settled, recovered: recovered.length }];
}
