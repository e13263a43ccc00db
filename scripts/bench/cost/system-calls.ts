import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChild } from '../children.ts';
import { add, type CostBySteps } from './figures.ts';
import type { Step } from './steps.ts';

/** Where the gateway is connected to. */
export interface Ports {
  readonly gateway: number;
  readonly upstream: number;
}

/** Whether system calls can be traced here; a container may forbid it. */
export const canTrace = (): boolean =>
  spawnSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' }).status === 0;

/** The step of a line such as `write(23<TCP:[127.0.0.1:8080->127.0.0.1:5012]>, ...`. */
export function stepOfLine(line: string, { gateway, upstream }: Ports): Step {
  const [, name = '', file = ''] = /^(\w+)\(\d+<(.*?)>(?:,|\))/.exec(line) ?? [];
  const isWrite = /^(?:write|send)/.test(name);
  if (file.includes(`:${gateway}->`)) return isWrite ? 'answer' : 'http';
  if (file.includes(`->127.0.0.1:${upstream}]`)) return isWrite ? 'send' : 'receive';
  if (/\.sqlite(?:-wal|-shm)?$/.test(file)) return 'commit';
  return file.endsWith('access.log') ? 'log' : 'elsewhere';
}

/** System calls of the main thread of `pid` while `work` is done; waiting and waking are the event loop's own and not counted. */
export async function countSystemCalls(
  pid: number,
  ports: Ports,
  log: string,
  work: () => Promise<void>,
): Promise<CostBySteps> {
  const args = ['-yy', '-s', '0', '-e', 'trace=!futex,epoll_wait,epoll_pwait', '-o', log, '-p', String(pid)];
  const strace = startChild('strace', args, { stdio: 'ignore' });
  const closed = once(strace, 'close');
  await awaitTracer(pid);
  await work();
  strace.kill('SIGINT');
  await closed;
  const cost: CostBySteps = {};
  for (const line of readFileSync(log, 'latin1').split('\n')) {
    if (/^\w+\(/.test(line)) add(cost, stepOfLine(line, ports), 'syscalls', 1);
  }
  return cost;
}

const LOOK_EVERY_MS = 10;
const LOOKS = 500;

async function awaitTracer(pid: number): Promise<void> {
  for (let look = 0; look < LOOKS; look += 1) {
    if (/^TracerPid:\s+[1-9]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))) return;
    await sleep(LOOK_EVERY_MS);
  }
  throw new Error('strace did not attach');
}
