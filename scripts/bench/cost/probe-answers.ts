import v8 from 'node:v8';
import { asyncPass } from './async-pass.ts';
import type { PassResult } from './pass.ts';
import { allocationPass, cpuPass } from './profile-passes.ts';
import { storePass } from './store-pass.ts';

/** Samples of the processor stand for `cpuUs`. */
const PASSES = {
  cpu: cpuPass,
  allocations: allocationPass,
  async: asyncPass,
  store: storePass,
};

export type PassName = keyof typeof PASSES;

export type ProbeRequest = 'read' | `start ${PassName}` | `stop ${PassName}`;

/** What the process has used since it began. */
export interface Used {
  /** Of all threads, user and system. */
  readonly cpuUs: number;
  /** In the heap of the main thread. */
  readonly bytes: number;
}

function used(): Used {
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, bytes: v8.getHeapStatistics().total_allocated_bytes };
}

const isPass = (name: string): name is PassName => name in PASSES;

async function answerTo(request: unknown): Promise<Used | PassResult | null> {
  if (request === 'read') return used();
  const [, verb, name = ''] = /^(start|stop) (.*)$/.exec(String(request)) ?? [];
  if (!isPass(name)) throw new Error(`the probe knows no ${request}`);
  if (verb === 'stop') return PASSES[name].stop();
  await PASSES[name].start();
  return null;
}

/** Answers each message of the parent by one; the channel keeps nobody waiting at the end. */
export function answerParent(): void {
  process.on('message', async (request) => process.send?.(await answerTo(request)));
  process.channel?.unref();
}
