// Which part of a delay is the gateway's own. Other work on the machine, the fuzzer's included, is not its fault.
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Without a core for so long, the gateway closes connections whose requests it has not read yet: the machine is too busy to judge
 * the gateway by that.
 */
export const STARVED_MS = 1000;

const MS_PER_TICK = 10;
const NANOSECONDS_PER_MS = 1e6;

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined; // the thread or the process has ended, or the system keeps no such file
  }
}

/** False where the system does not tell who waits for a core: a delay's parts cannot be told apart there. */
export const CAN_TELL_WAITS = read('/proc/self/schedstat') !== undefined;

/**
 * Milliseconds for which a thread, by default the main one, was ready to run and had no core since it began; 0 where the system does
 * not tell, or when the thread has ended.
 */
export const threadWaitedMs = (pid: number, id = String(pid)): number =>
  Number(read(`/proc/${pid}/task/${id}/schedstat`)?.split(' ')[1] ?? 0) / NANOSECONDS_PER_MS;

function workerWaits(pid: number): Map<string, number> {
  try {
    const ids = readdirSync(`/proc/${pid}/task`).filter((id) => id !== String(pid));
    return new Map(ids.map((id) => [id, threadWaitedMs(pid, id)]));
  } catch {
    return new Map(); // the process has ended, which others report
  }
}

const LOOK_MS = 100;
let lookedAt = performance.now();
/** When this thread came late to a timer, and by how much. */
const late: { readonly at: number; readonly ms: number }[] = [];

setInterval(() => {
  const at = performance.now();
  const ms = at - lookedAt - LOOK_MS;
  lookedAt = at;
  if (ms > LOOK_MS) late.push({ at, ms });
  if (late.length > 1000) late.shift();
}, LOOK_MS).unref();

/** The longest time since a moment, in milliseconds, in which this thread read nothing: a client that stalls is cut, and rightly. */
export const stalledMs = (since: number): number =>
  Math.max(0, performance.now() - lookedAt - LOOK_MS, ...late.filter(({ at }) => at > since).map(({ ms }) => ms));

/** Milliseconds that other machines on the same hardware have taken from this one since it started. */
const stolenMs = (): number => Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(read('/proc/stat') ?? '')?.[1] ?? 0) * MS_PER_TICK;

/** Milliseconds for which the main thread of a process had a core since it began; 0 where the system does not tell. */
const ranMs = (pid: number): number =>
  Number(read(`/proc/${pid}/task/${pid}/schedstat`)?.split(' ')[0] ?? 0) / NANOSECONDS_PER_MS;

/** Parts of a delay, in milliseconds. */
export interface Delay {
  /**
   * The process's own: what it took but for the waits for a core of its main thread, of the worker that waited most (the main thread
   * may have waited for it) and of the thread that asks, and what other machines took. On a busy machine these overlap, and the
   * result is too small rather than too large.
   */
  readonly ownMs: number;
  /** For how long its main thread had a core meanwhile: if much less than its own part, it waited for a disk or for another thread. */
  readonly ranMs: number;
}

/** Starts to measure; the result says how much of the milliseconds that went by since was the delay of a process. */
export function startDelay(pid: number): (tookMs: number) => Delay {
  const waits = () => ({
    fixed: threadWaitedMs(pid) + threadWaitedMs(process.pid) + stolenMs(),
    workers: workerWaits(pid),
    ran: ranMs(pid),
  });
  const before = waits();
  return (tookMs) => {
    const after = waits();
    const worker = Math.max(0, ...[...after.workers].map(([id, waited]) => waited - (before.workers.get(id) ?? 0)));
    return {
      ownMs: Math.max(0, tookMs - (after.fixed - before.fixed) - worker),
      ranMs: after.ran - before.ran,
    };
  };
}
