import { setTimeout as sleep } from 'node:timers/promises';
import type { Gateway } from './gateway.ts';
import { type LoadTool, measureThroughput } from './measure-throughput.ts';
import type { Progress } from './progress.ts';
import { peakMbWhile, residentMb } from './resident-memory.ts';

export const MINUTES = 10;
const SETTLE_MS = 5_000;

/** Resident memory of the gateway in megabytes. */
export interface SustainedMemory {
  /** Some seconds after its start, before the first call. */
  readonly freshMb: number;
  /** When the load of ten minutes ends. */
  readonly afterMb: number;
  /** The most while it ran. */
  readonly peakMb: number;
  readonly perSecond: number;
}

/** Puts a gateway that has just started under load for ten minutes, and looks at its memory. */
export async function measureSustained(
  { target, apiKey }: Gateway,
  tool: LoadTool,
  progress: Progress,
): Promise<SustainedMemory> {
  await sleep(SETTLE_MS);
  const freshMb = residentMb(target.pid);
  const rates: number[] = [];
  let afterMb = freshMb;
  const peakMb = await peakMbWhile(target.pid, async () => {
    for (let minute = 1; minute <= MINUTES; minute += 1) {
      progress.say(`minute ${minute} of ${MINUTES} under load: ${Math.round(afterMb)} MB`);
      rates.push((await measureThroughput(tool, target, apiKey, 60)).perSecond);
      afterMb = residentMb(target.pid);
    }
  });
  return { freshMb, afterMb, peakMb, perSecond: rates.reduce((sum, rate) => sum + rate, 0) / MINUTES };
}
