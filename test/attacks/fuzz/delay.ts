// How long a process had to wait for a core. Other work on the machine, the fuzzer's included, is not the gateway's fault: what it
// takes is subtracted from each delay before it is judged.
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Without a core for so long, the gateway closes connections whose requests it has not read yet: the machine is too busy to judge
 * the gateway by that.
 */
export const STARVED_MS = 1000;

/** Milliseconds for which each thread of a process was ready to run and had no core, by its id. */
export type Waits = ReadonlyMap<string, number>;

const MS_PER_TICK = 10;
const NANOSECONDS_PER_MS = 1e6;

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined; // the thread or the process has ended, or the system keeps no such file
  }
}

/** False where the system does not tell who waits for a core: delays cannot be judged there. */
export const CAN_TELL_WAITS = read('/proc/self/schedstat') !== undefined;

/** How long a thread, by default the main one, has waited since it began; 0 where the system does not tell, or when it has ended. */
export const threadWaitMs = (pid: number, thread = String(pid)): number =>
  Number(read(`/proc/${pid}/task/${thread}/schedstat`)?.split(' ')[1] ?? 0) / NANOSECONDS_PER_MS;

/** The waits of a process since it began; none where the system does not tell, or when it has ended. */
export function waitsOf(pid: number): Waits {
  try {
    return new Map(readdirSync(`/proc/${pid}/task`).map((thread) => [thread, threadWaitMs(pid, thread)]));
  } catch {
    return new Map();
  }
}

/**
 * What a process has waited between two looks: its main thread, and the worker that waited most, since the main thread may have
 * waited for that one.
 */
export function waitedBetween(pid: number, before: Waits, after: Waits): number {
  let [main, worker] = [0, 0];
  for (const [thread, waited] of after) {
    const since = waited - (before.get(thread) ?? 0);
    if (thread === String(pid)) main = since;
    else worker = Math.max(worker, since);
  }
  return main + worker;
}

/** Milliseconds that other machines on the same hardware have taken from this one since it started. */
export const stolenMs = (): number =>
  Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(read('/proc/stat') ?? '')?.[1] ?? 0) * MS_PER_TICK;
