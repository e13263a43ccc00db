// What was seen of calls from outside, against what the ledger says of them.

import { numbersFrom } from '../../../src/domain/id.ts';
import { MAX_AMOUNT, usdNumber } from '../../../src/domain/limits.ts';
import { build } from '../../../src/store/db/sql.ts';
import { findLedgerFaults } from '../../crash/invariants.ts';
import { NO_500, type Served } from './checks.ts';
import type { Findings, StepRecord } from './findings.ts';
import { type KeySpec, mayCall } from './keys.ts';
import { servedAs } from './served.ts';
import type { Marked } from './upstreams.ts';
import type { World } from './world.ts';

const SUMS = 'the sums of the ledger are right';
const WRITTEN_AHEAD = 'what reached an upstream has a row';
const ACKNOWLEDGED = 'an answered call is settled at what was answered';

/** Longer than any call runs. */
const LONGEST_MS = 60_000;

interface Attempt {
  readonly provider: string;
  readonly model: string;
}

function attemptsIn(json: string | null): Attempt[] {
  const attempts: unknown = JSON.parse(json ?? '[]');
  return Array.isArray(attempts) ? attempts : [];
}

export class Evidence {
  readonly #findings: Findings;
  #dispatched = new Set<string>();
  #acknowledged: { readonly served: Served; readonly keyName: string; readonly record: StepRecord }[] = [];
  #checkedAt = Date.now();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  dispatched(mark: string, { isNamed }: Marked): void {
    if (isNamed) this.#dispatched.add(mark);
  }

  acknowledged(served: Served & { readonly keyName: string }, record: StepRecord): void {
    this.#acknowledged.push({ served, keyName: served.keyName, record });
  }

  /** Looks at what has come since the last time, and at all sums. */
  check(world: World): void {
    const keys = new Map([...world.keys, world.toggled, world.attacker.key].map(({ id, spec }) => [id, spec]));
    const [dispatched, acknowledged] = [this.#dispatched, this.#acknowledged];
    [this.#dispatched, this.#acknowledged] = [new Set(), []];
    this.#checkRows(world, keys, dispatched);
    for (const { served, keyName, record } of acknowledged)
      this.#checkAcknowledged(world, keys, served, keyName, record);
    const judged = world.keys.map(({ id }) => id);
    const honest = new Set(world.keys.filter(({ spec }) => spec.mayBeLiedTo !== true).map(({ id }) => id));
    honest.add(world.budgeted);
    for (const fault of findLedgerFaults(world.db, judged, (id) => !honest.has(id)))
      this.#findings.report(SUMS, this.#withName(world, fault));
  }

  /** When nothing runs any more. */
  checkQuiet(world: World): void {
    this.check(world);
    const open = world.db.all(build.selectFrom('calls').select(['id', 'createdAt']).where('state', '=', 'open'));
    if (open.length > 0) this.#findings.report('no call stays open', `${open.length} do, such as ${open[0]?.id}`);
  }

  #withName(world: World, fault: string): string {
    const key = world.keys.find(({ id }) => fault.includes(id));
    return `${fault} ("${key?.spec.name}")`;
  }

  #checkRows({ db }: World, keys: ReadonlyMap<string, KeySpec>, dispatched: ReadonlySet<string>): void {
    const since = this.#checkedAt;
    this.#checkedAt = Date.now();
    const rows = db.all(
      build
        .selectFrom('calls')
        .select([
          'id',
          'keyId',
          'clientRequestId',
          'clientAddress',
          'action',
          'attemptsJson',
          'errorCode',
          'statusCode',
          'settledAt',
        ])
        .where('number', '>=', numbersFrom(since - LONGEST_MS)),
    );
    const named = new Set(rows.map((row) => row.clientRequestId));
    for (const mark of dispatched) if (!named.has(mark)) this.#findings.report(WRITTEN_AHEAD, `${mark} has none`);
    for (const row of rows) {
      if (row.settledAt === null || row.settledAt < since) continue;
      const key = keys.get(row.keyId);
      if (row.errorCode === 'internal_error' || row.statusCode === 500)
        this.#findings.report(NO_500, `the row of ${row.clientRequestId}`);
      if (key === undefined) continue;
      for (const { provider, model } of attemptsIn(row.attemptsJson)) {
        const served = servedAs(provider, model);
        const action = row.action === 'image' || row.action === 'moderation' ? row.action : 'chat';
        const isPermitted =
          served === undefined || mayCall(key, { ...served, action, address: row.clientAddress ?? undefined });
        if (isPermitted) continue;
        this.#findings.report(
          'nothing is called that the rules do not permit',
          `${provider}/${model} for "${key.name}", by the row of ${row.clientRequestId}`,
        );
      }
    }
  }

  #checkAcknowledged(
    { db }: World,
    keys: ReadonlyMap<string, KeySpec>,
    { callId, cost }: Served,
    keyName: string,
    record: StepRecord,
  ): void {
    const row = db.get(build.selectFrom('calls').select(['state', 'cost', 'keyId']).where('id', '=', callId));
    const found =
      row && `${row.state} ${cost === undefined ? undefined : usdNumber(row.cost)} ${keys.get(row.keyId)?.name}`;
    // An upstream that lies can charge more than the largest amount that the ledger keeps.
    const kept = cost === undefined ? undefined : Math.min(cost, usdNumber(MAX_AMOUNT));
    const wanted = `settled ${kept} ${keyName}`;
    if (found !== wanted) this.#findings.report(ACKNOWLEDGED, `${callId} is ${found}, not ${wanted}`, record);
  }
}
