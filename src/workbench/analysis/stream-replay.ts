import { setTimeout as pause } from 'node:timers/promises';
import type { ReplayProgress } from '../../generated/types.ts';
import { SharedProgress } from '../../lib/threads.ts';
import type { Analysis } from './analysis-job.ts';

/** Milliseconds between two looks at how far it is. */
const EVERY_MS = 200;

/**
 * A replay: how far it is, and at the end the analysis. It is given up when nobody reads on, or the signal is aborted.
 * @param analyse asks the analyst for it. @throws what that throws: ApiError 499 when the signal is aborted
 */
export async function* streamReplay(
  analyse: (progress: SharedProgress) => Promise<Analysis>,
  signal: AbortSignal,
): AsyncGenerator<ReplayProgress | Analysis> {
  const progress = new SharedProgress();
  const stop = (): void => progress.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const running = analyse(progress);
  try {
    for (let told = '0 0'; ; ) {
      const analysis = await Promise.race([running, pause(EVERY_MS)]);
      if (analysis !== undefined) {
        yield analysis;
        return;
      }
      const { done, all } = progress.read();
      if (told === `${done} ${all}`) continue;
      told = `${done} ${all}`;
      yield { done, all };
    }
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}
