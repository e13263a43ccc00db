// The probe's process, from outside.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { childEnv } from '../../support/network-guard-env.ts';
import type { Delay } from './delay.ts';

export interface ProbeOrders {
  /** Of the gateway's process. */
  readonly pid: number;
  readonly gateway: string;
  readonly management: string;
  readonly token: string;
  readonly masterToken: string;
  readonly model: string;
}

/** One answer that the probe has waited for. */
export interface Probed extends Delay {
  readonly kind: string;
  /** `served`, or what came instead. */
  readonly outcome: string;
  readonly tookMs: number;
}

export type ProbeNews = Probed | { readonly origin: string };

export interface Probing {
  /** Of the upstream that behaves well. */
  readonly origin: string;
  start(orders: ProbeOrders, hear: (probed: Probed) => void): void;
  stop(): void;
}

export async function startProbing(): Promise<Probing> {
  const child: ChildProcess = fork(path.join(import.meta.dirname, 'probe.ts'), {
    env: childEnv(),
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [news]: (ProbeNews | number)[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (typeof news !== 'object' || news === null || !('origin' in news)) throw new Error('the probe did not start');
  return {
    origin: news.origin,
    start(orders, hear) {
      child.on('message', (said: ProbeNews) => {
        if ('outcome' in said) hear(said);
      });
      child.send(orders);
    },
    stop: () => void child.kill('SIGKILL'),
  };
}
