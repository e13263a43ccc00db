// What is watched while the run goes on, and the care that the world needs meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import { CAN_READ_MEMORY, residentMb } from '../../../scripts/bench/resident-memory.ts';
import type { KeyCreate } from '../../../src/generated/types.ts';
import { build } from '../../../src/store/db/sql.ts';
import { CAN_TELL_WAITS, STARVED_MS } from './delay.ts';
import { BUDGET } from './keys.ts';
import type { Probed } from './probing.ts';
import type { Run } from './run.ts';
import { RESIDENT_MB } from './settings.ts';
import type { World } from './world.ts';

/** The gateway's own part of an answer's delay, for those who behave. Where nobody can tell what its own part is, ten times as much. */
const MOST_DELAY_MS = CAN_TELL_WAITS ? 1000 : 10_000;

/** Answers that were late before it is a finding: what stops the serving thread delays all who ask; one alone may be the machine's. */
const LATE_ANSWERS = 3;

/** The gateway logs what made its event loop late after that. */
const LOG_COMES_WITHIN_MS = 500;

/** The largest that was seen. */
export interface Extremes {
  memoryMb: number;
  delayMs: number;
  /** Who was delayed most, and what ran at the time. */
  during: string;
  /** How many answers were late. */
  late: number;
}

/** Judges how those who behave are served. */
export async function judgeProbe(run: Run, extremes: Extremes, probed: Probed): Promise<void> {
  const { kind, outcome, tookMs, ownMs, ranMs } = probed;
  if (run.isOver) return;
  const { findings } = run;
  const [own, ran, all] = [ownMs, ranMs, tookMs].map(Math.round);
  const times = `${own} ms of its own (its main thread ran for ${ran} ms), ${all} ms in all`;
  const isStarved = tookMs - ownMs > STARVED_MS;
  if (outcome !== 'served' && !isStarved && (await run.isAlive()))
    findings.report('those who behave are served', `${kind}: ${outcome} (${times})`, ...run.current());
  if (ownMs > extremes.delayMs) {
    const generators = new Set(run.current().map(({ generator }) => generator));
    Object.assign(extremes, { delayMs: ownMs, during: `${kind}, during ${[...generators].join(', ')}` });
  }
  if (ownMs <= MOST_DELAY_MS) return;
  extremes.late += 1;
  if (extremes.late < LATE_ANSWERS) return;
  const sent = run.current();
  await sleep(LOG_COMES_WITHIN_MS);
  const detail = [`${kind}: ${times}`, ...run.lateSince(tookMs + LOG_COMES_WITHIN_MS)].join('\n');
  findings.report('nobody who behaves waits for longer than a second', detail, ...sent);
}

/** Judges the gateway's memory, where it can be read. */
export function watchMemory(run: Run, extremes: Extremes): NodeJS.Timeout {
  return setInterval(() => {
    if (!CAN_READ_MEMORY || run.isOver) return;
    let now: number;
    try {
      now = residentMb(run.world.serving.pid);
    } catch {
      return; // it has just ended, which `watchLife` reports
    }
    extremes.memoryMb = Math.max(extremes.memoryMb, now);
    if (now > RESIDENT_MB)
      run.findings.report(`resident memory stays below ${RESIDENT_MB} MB`, `${Math.round(now)} MB`, ...run.current());
  }, 200);
}

/** Ends the run when the gateway's process ends by itself. */
export function watchLife(run: Run): void {
  const { serving } = run.world;
  void serving.ended.then(() => {
    if (run.isOver) return;
    run.isOver = true;
    run.findings.report('the process lives', serving.complaints.slice(-600), ...run.current());
  });
}

const PRIVATE = /connect to (?:10\.|127\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|0\.|\[?(?:::|f[cd]|fe80))/;

/** No connection may have led to where only this machine or its network is. */
export function judgeDepartures(run: Run): void {
  const departure = run.world.departures().find((line) => PRIVATE.test(line));
  if (departure !== undefined) run.findings.report('no private address is reached', departure);
}

type Limits = Pick<KeyCreate, 'usageLimit' | 'periodUsageLimit'>;
type Spent = { readonly usage: bigint; readonly currentPeriodUsage: bigint };

const PICO_PER_USD = 1e12;
const plus = (limit: unknown, spent: bigint): string => (Number(spent) / PICO_PER_USD + Number(limit)).toFixed(6);

/** Raises limits by what was spent, so that what has a cap is never idle for long. */
export async function raiseLimits({ db, keys, attacked, budgeted, management }: World): Promise<void> {
  const raise = async (path: string, limits: Limits | undefined, spent: Spent | undefined): Promise<void> => {
    if (limits === undefined || spent === undefined) return;
    const { usageLimit, periodUsageLimit } = limits;
    const raised = {
      ...limits,
      ...(usageLimit === undefined ? {} : { usageLimit: plus(usageLimit, spent.usage) }),
      ...(periodUsageLimit === undefined ? {} : { periodUsageLimit: plus(periodUsageLimit, spent.currentPeriodUsage) }),
    };
    const headers = { authorization: `Bearer ${attacked.masterKey.token}`, 'content-type': 'application/json' };
    const sent = { method: 'PATCH', headers, body: JSON.stringify(raised) };
    await fetch(`${management}/v1/master/${path}`, sent).catch(() => undefined); // the next time will do
  };
  const spentOf = build.selectFrom('keys').select(['usage', 'currentPeriodUsage']);
  for (const { id, spec } of keys) await raise(`keys/${id}`, spec.limits, db.get(spentOf.where('id', '=', id)));
  const ofBudget = build.selectFrom('budgets').select(['usage', 'currentPeriodUsage']);
  await raise(`projects/${budgeted}/budget`, BUDGET, db.get(ofBudget.where('subjectId', '=', budgeted)));
}
