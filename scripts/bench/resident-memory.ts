import { existsSync, readFileSync } from 'node:fs';

/** Whether the memory of another process can be read here. */
export const CAN_READ_MEMORY = existsSync('/proc/self/status');

const KIB = 1024;
const MEGABYTE = 1e6;

/** Resident memory of a running process, in megabytes. */
export function residentMb(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} tells no resident memory`);
  return (Number(kib) * KIB) / MEGABYTE;
}

/** The most resident memory of a process while something is done, in megabytes. */
export async function peakMbWhile(pid: number, work: () => Promise<void>): Promise<number> {
  let most = residentMb(pid);
  const timer = setInterval(() => {
    most = Math.max(most, residentMb(pid));
  }, 100);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(most, residentMb(pid));
}
