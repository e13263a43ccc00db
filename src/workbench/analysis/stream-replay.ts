import { setTimeout as pause } from 'node:timers/promises';
import type { ReplayProgress } from '../../generated/types.ts';
import { SharedProgress } from '../../lib/shared-progress.ts';
import type { Analysis, AnalysisJob } from './analysis-job.ts';
import type { Analyst } from './analyst.ts';

/** Milliseconds between two looks at how far it is. */
const EVERY_MS = 200;

/**
 * A replay: how far it is, and at the end the analysis. It is given up when nobody reads on, or the signal is aborted.
 * @throws as `Analyst.analyse`; ApiError 499 when the signal is aborted
 */
export async function* streamReplay(
  analyst: Pick<Analyst, 'analyse'>,
  job: AnalysisJob & { readonly kind: 'replay' },
  signal: AbortSignal,
): AsyncGenerator<ReplayProgress | Analysis> {
  const progress = new SharedProgress();
  const stop = (): void => progress.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const running = analyst.analyse(job, progress);
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
