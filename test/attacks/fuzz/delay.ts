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

/** False where the system does not tell who runs and who waits for a core: a delay's parts cannot be told apart there. */
export const CAN_TELL_WAITS = read('/proc/self/schedstat') !== undefined;

interface Thread {
  /** Milliseconds on a core since it began. */
  readonly ranMs: number;
  /** Milliseconds for which it was ready to run and had no core. */
  readonly waitedMs: number;
}

/** Zeros where the system does not tell, or when the thread has ended. */
function thread(pid: number, id = String(pid)): Thread {
  const [ran, waited] = read(`/proc/${pid}/task/${id}/schedstat`)?.split(' ') ?? [];
  return { ranMs: Number(ran ?? 0) / NANOSECONDS_PER_MS, waitedMs: Number(waited ?? 0) / NANOSECONDS_PER_MS };
}

/** How long the main thread of a process has waited for a core since it began. */
export const mainWaitedMs = (pid: number): number => thread(pid).waitedMs;

function workers(pid: number): Map<string, number> {
  try {
    const ids = readdirSync(`/proc/${pid}/task`).filter((id) => id !== String(pid));
    return new Map(ids.map((id) => [id, thread(pid, id).waitedMs]));
  } catch {
    return new Map(); // the process has ended, which others report
  }
}

/** Milliseconds that other machines on the same hardware have taken from this one since it started. */
const stolenMs = (): number => Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(read('/proc/stat') ?? '')?.[1] ?? 0) * MS_PER_TICK;

/**
 * Starts to measure; the result says how much of the milliseconds that went by since was the own delay of a process. That is what it
 * took but for the waits for a core: of its main thread, of the worker that waited most (the main thread may have waited for it), of
 * the thread that asks, and what other machines took. At least it is the time for which its main thread ran.
 */
export function startDelay(pid: number): (tookMs: number) => number {
  const look = () => ({
    main: thread(pid),
    workers: workers(pid),
    asking: mainWaitedMs(process.pid),
    stolen: stolenMs(),
  });
  const before = look();
  return (tookMs) => {
    const after = look();
    const worker = Math.max(0, ...[...after.workers].map(([id, waited]) => waited - (before.workers.get(id) ?? 0)));
    const stolen = after.stolen - before.stolen;
    const waited = after.main.waitedMs - before.main.waitedMs + worker + (after.asking - before.asking) + stolen;
    return Math.max(0, tookMs - waited, after.main.ranMs - before.main.ranMs - stolen);
  };
}
