// How long a process has waited for a core: what other work on the machine, the fuzzer's included, takes from it is not its fault.
import { existsSync, readFileSync } from 'node:fs';

/**
 * Without a core for so long, the gateway closes connections whose requests it has not read yet: the machine has too much to do to
 * judge it by that.
 */
export const STARVED_MS = 1000;

const CAN_READ = existsSync('/proc/self/schedstat');

/** Milliseconds for which the main thread of a process was ready to run and had no core, since it began; 0 where nothing tells. */
export function waitedMs(pid: number): number {
  if (!CAN_READ) return 0;
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6;
  } catch {
    return 0; // it has ended, which others tell
  }
}
