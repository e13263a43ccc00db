import { runningPeriod } from '../../src/domain/api-key.ts';
import { usdNumber } from '../../src/domain/money.ts';
import { toApiKey } from '../../src/store/key-columns.ts';
import { build } from '../../src/store/sql.ts';
import type { Acknowledged } from './load.ts';
import type { World } from './world.ts';

/** What must hold of the ledger whenever the gateway has been started again. */
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

/** What is broken, in words; nothing when all holds. */
export function findFaults(
  { db }: World,
  { keyIds, acknowledged, dispatched }: Evidence,
): [faults: string[], counts: Counts] {
  const faults: string[] = [];
  const check = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  const rows = db.all(
    build
      .selectFrom('calls')
      .selectAll()
      .where('key_id', 'in', [...keyIds]),
  );
  const open = db.all(build.selectFrom('calls').select('id').where('state', '=', 'open'));
  check(open.length === 0, `no row stays open: ${open.length} do`);

  const byClient = Map.groupBy(rows, (row) => row.client_request_id ?? '');
  for (const [clientId, ofClient] of byClient) {
    check(ofClient.length === 1, `every call has one row: ${clientId} has ${ofClient.length}`);
  }
  for (const clientId of dispatched) {
    check(byClient.has(clientId), `what reached the upstream has a row: ${clientId} has none`);
  }
  for (const { clientId, callId, keyId, cost } of acknowledged) {
    const [row] = byClient.get(clientId) ?? [];
    const found = row && `${row.id} ${row.state} ${usdNumber(row.cost_pico)} ${row.key_id}`;
    const wanted = `${callId} settled ${cost} ${keyId}`;
    check(
      found === wanted,
      `an acknowledged call is settled at what was answered: ${clientId} is ${found}, not ${wanted}`,
    );
  }
  for (const row of rows.filter(({ state }) => state === 'recovered')) {
    check(row.cost_pico === row.reservation_pico, `a recovered call costs its reservation: ${row.id}`);
  }

  const byKey = Map.groupBy(rows, (row) => row.key_id);
  for (const row of db.all(
    build
      .selectFrom('keys')
      .selectAll()
      .where('id', 'in', [...keyIds]),
  )) {
    const key = toApiKey(row);
    const ofKey = byKey.get(row.id) ?? [];
    const total = sum(ofKey);
    const window = sum(
      ofKey.filter(({ period_started_at: begun }) => begun !== null && begun === key.currentPeriodStartedAt),
    );
    check(key.usage === total, `sums equal the rows: ${row.id} has ${key.usage}, its rows ${total}`);
    check(
      key.currentPeriodUsage === window,
      `sums of windows equal the rows: ${row.id} has ${key.currentPeriodUsage}, its rows ${window}`,
    );
    check(key.reserved === 0n && key.currentPeriodReserved === 0n, `nothing is held back any more: ${row.id}`);
    check(
      key.usageLimit === null || key.usage <= key.usageLimit,
      `no key is over its cap: ${row.id} by ${key.usage - (key.usageLimit ?? 0n)}`,
    );
    const spent = runningPeriod(key, Date.now())?.usage ?? 0n;
    check(
      key.periodUsageLimit === null || spent <= key.periodUsageLimit,
      `no key is over its recurring cap: ${row.id}`,
    );
  }
  const count = (state: string) => rows.filter((row) => row.state === state).length;
  return [faults, { settled: count('settled'), recovered: count('recovered') }];
}

const sum = (rows: readonly { readonly cost_pico: bigint }[]): bigint =>
  rows.reduce((total, { cost_pico: cost }) => total + cost, 0n);
