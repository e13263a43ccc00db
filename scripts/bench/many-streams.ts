import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { cpuSeconds } from './cpu-time.ts';
import type { Gateway } from './gateway.ts';
import { exchangeOnce, measureBursts } from './measure-exchanges.ts';
import type { Progress } from './progress.ts';
import { peakMbWhile, residentMb } from './resident-memory.ts';
import { startSlowClient } from './slow-client.ts';
import { rawRequests, SLOW } from './workload.ts';

export const STREAMS = 500;
const WARM_UP_SECONDS = 3;
const STUCK_MS = 20_000;
const BEGIN_MS = 60_000;
const REST_MS = 5_000;
const PAUSE_MS = 100;

/** Resident memory of the gateway in megabytes while many streams run through it. */
export interface StreamMemory {
  readonly name: string;
  readonly beforeMb: number;
  readonly peakMb: number;
  /** Some seconds after the last stream has ended. */
  readonly afterMb: number;
  /** Of one core. */
  readonly cpuShare: number;
}

/** Whole streams, of a chunk every 100 ms, all at once. */
async function slowStreams({ target, apiKey }: Gateway): Promise<void> {
  const nextRequest = rawRequests(target, apiKey, SLOW);
  const streams = Array.from({ length: STREAMS }, async () => {
    const connection = new Connection(target.port);
    await exchangeOnce(connection, target, nextRequest(), SLOW).finally(() => connection.close());
  });
  await Promise.all(streams);
}

/**
 * Streams that never end, of as many chunks as are taken, for clients that take few of them or none: 20 s from when the last one
 * has begun, then these leave.
 */
async function stuckStreams({ target, apiKey }: Gateway, pauseMs: number): Promise<void> {
  const nextRequest = rawRequests(target, apiKey, 'endless');
  const clients = Array.from({ length: STREAMS }, () => startSlowClient(target.port, nextRequest(), pauseMs));
  try {
    const deadline = performance.now() + BEGIN_MS;
    while (clients.some(({ read }) => read === 0)) {
      if (performance.now() > deadline) throw new Error(`a stream did not begin in ${BEGIN_MS} ms`);
      await sleep(100);
    }
    await sleep(STUCK_MS);
  } finally {
    for (const client of clients) client.leave();
  }
}

const SCENARIOS: readonly { name: string; run(gateway: Gateway): Promise<void> }[] = [
  { name: 'of 200 chunks 100 ms apart', run: slowStreams },
  { name: 'endless, read 1 KB every 100 ms', run: (gateway) => stuckStreams(gateway, PAUSE_MS) },
  { name: 'endless, not read', run: (gateway) => stuckStreams(gateway, Number.POSITIVE_INFINITY) },
];

/** Runs many streams at once through a gateway that has served a while, in several ways, and looks at its memory. */
export async function measureManyStreams(gateway: Gateway, progress: Progress): Promise<StreamMemory[]> {
  const { target, apiKey } = gateway;
  progress.say('warm-up');
  await measureBursts(target, apiKey, WARM_UP_SECONDS);
  const figures: StreamMemory[] = [];
  for (const { name, run } of SCENARIOS) {
    progress.say(`${STREAMS} streams ${name}`);
    const [beforeMb, cpuBefore, start] = [residentMb(target.pid), cpuSeconds(target.pid), performance.now()];
    const peakMb = await peakMbWhile(target.pid, () => run(gateway));
    const cpuShare = (cpuSeconds(target.pid) - cpuBefore) / ((performance.now() - start) / 1000);
    await sleep(REST_MS);
    figures.push({ name, beforeMb, peakMb, afterMb: residentMb(target.pid), cpuShare });
  }
  await measureBursts(target, apiKey, 1); // It still serves.
  return figures;
}
