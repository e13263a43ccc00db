import { type RawBuilder, sql } from 'kysely';
import { runningPeriod } from '../../src/domain/api-key.ts';
import { MAX_AMOUNT, usdNumber } from '../../src/domain/money.ts';
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

/** SQLite's sum of integers fails beyond 64 bits, which an upstream that lies can reach: sums are taken in two halves. */
const HALF = 1_000_000_000n;
const halves = (amount: RawBuilder<bigint>) =>
  [sql<bigint>`sum(${amount} / ${HALF})`, sql<bigint>`sum(${amount} % ${HALF})`] as const;

/** What the calls of each key have cost in each of its windows, and what is held back for those that run. */
function sumsOf(db: Database, keyIds: readonly string[]): Sums[] {
  const [costHigh, costLow] = halves(sql`cost_pico`);
  const [heldHigh, heldLow] = halves(sql`iif(state = 'open', reservation_pico, 0)`);
  const rows = db.all(
    build
      .selectFrom('calls')
      .select(['key_id', 'period_started_at'])
      .select([costHigh.as('cost_high_pico'), costLow.as('cost_low_pico')])
      .select([heldHigh.as('held_high_pico'), heldLow.as('held_low_pico')])
      .where('key_id', 'in', [...keyIds])
      .groupBy(['key_id', 'period_started_at']),
  );
  return rows.map((row) => ({
    keyId: row.key_id,
    periodStartedAt: row.period_started_at,
    cost: row.cost_high_pico * HALF + row.cost_low_pico,
    held: row.held_high_pico * HALF + row.held_low_pico,
  }));
}

interface Sums {
  readonly keyId: string;
  readonly periodStartedAt: number | null;
  readonly cost: bigint;
  readonly held: bigint;
}

const total = (sums: readonly Sums[], amount: 'cost' | 'held'): bigint =>
  sums.reduce((all, each) => all + each[amount], 0n);

/**
 * What is broken of what must hold at every moment, calls running or not: sums are those of the rows, and within the limits.
 * @param overcharged keys whose upstreams charged more than they may: their limits are not checked
 */
export function findLedgerFaults(
  db: Database,
  keyIds: readonly string[],
  overcharged: ReadonlySet<string> = new Set(),
): string[] {
  const faults = new Faults();
  // One snapshot, for others write meanwhile.
  db.connection
    .transaction(() => {
      const byKey = Map.groupBy(sumsOf(db, keyIds), ({ keyId }) => keyId);
      for (const row of db.all(
        build
          .selectFrom('keys')
          .selectAll()
          .where('id', 'in', [...keyIds]),
      )) {
        const key = toApiKey(row);
        checkSums(faults, row.id, key, byKey.get(row.id) ?? []);
        if (!overcharged.has(row.id)) checkLimits(faults, row.id, key);
      }
    })
    .deferred();
  return faults.found;
}

function checkSums(faults: Faults, id: string, key: ReturnType<typeof toApiKey>, sums: readonly Sums[]): void {
  const startedAt = key.currentPeriodStartedAt;
  const inWindow = startedAt === null ? [] : sums.filter((each) => each.periodStartedAt === startedAt);
  const agree = (name: string, kept: bigint, counted: bigint): void => {
    // The largest amount that is kept: an upstream that lies can take a sum there.
    const wanted = counted > MAX_AMOUNT ? MAX_AMOUNT : counted;
    faults.check(kept === wanted, `sums equal the rows: ${id} has ${name} ${kept}, its rows ${counted}`);
  };
  agree('usage', key.usage, total(sums, 'cost'));
  agree('reserved', key.reserved, total(sums, 'held'));
  agree('current period usage', key.currentPeriodUsage, total(inWindow, 'cost'));
  agree('current period reserved', key.currentPeriodReserved, total(inWindow, 'held'));
}

function checkLimits(faults: Faults, id: string, key: ReturnType<typeof toApiKey>): void {
  const within = (name: string, limit: bigint | null, spent: bigint): void =>
    faults.check(limit === null || spent <= limit, `no key is over its ${name} cap: ${id} by ${spent - (limit ?? 0n)}`);
  within('all-time', key.usageLimit, key.usage + key.reserved);
  const period = runningPeriod(key, Date.now());
  if (period !== undefined) within('recurring', key.periodUsageLimit, period.usage + key.currentPeriodReserved);
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
