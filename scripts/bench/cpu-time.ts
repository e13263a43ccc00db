import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** USER_HZ, in which /proc reports: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

function fromProc(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the command in brackets and may hold anything: fields are counted from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** `[[dd-]hh:]mm:ss[.cc]` */
function fromPs(pid: number): number {
  const text = execFileSync('ps', ['-o', 'cputime=', '-p', String(pid)], { encoding: 'latin1' }).trim();
  const [clock = '', days = '0'] = text.split('-').reverse();
  const seconds = clock.split(':').reduce((total, part) => total * 60 + Number(part), 0);
  return Number(days) * 86_400 + seconds;
}

/** CPU time (user and system, all threads) of a running process so far, in seconds. */
export const cpuSeconds = (pid: number): number => (existsSync('/proc/self/stat') ? fromProc(pid) : fromPs(pid));
