import type { Catalog } from '../../catalog/catalog.ts';
import { ApiError } from '../../domain/errors.ts';
import type { Clock } from '../../domain/time.ts';
import type { Turns } from '../../domain/turns.ts';
import type { SharedProgress } from '../../lib/shared-progress.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { createDatabaseThread } from '../../store/threads/database-thread.ts';
import type { Analysis, AnalysisJob, AnalysisQuestion, AnalystWorkerData } from './analysis-job.ts';

/** Analyses the rules of one organization outside the serving thread. */
export interface Analyst {
  /** @throws ApiError: of the analysis itself, 503 when too many wait, 504 when it takes too long; PolicyFailure's are 503 */
  analyse(job: AnalysisJob, progress?: SharedProgress): Promise<Analysis>;
  close(): Promise<void>;
}

export interface AnalystOptions {
  readonly databasePath: string;
  readonly catalog: Catalog;
  /** Ids of the providers that the operator has a credential for, or that need none. */
  readonly servedProviders: readonly string[];
  /** The policy in force. */
  readonly bundle: () => PolicyBundle;
  readonly clock: Clock;
  readonly turns: Turns;
  /** Milliseconds that one analysis may take. */
  readonly limitMs?: number;
}

/** One thread, one analysis at a time. */
export function createAnalyst({
  databasePath,
  catalog,
  servedProviders,
  bundle,
  clock,
  turns,
  limitMs = 30_000,
}: AnalystOptions): Analyst {
  const workerData: AnalystWorkerData = {
    databasePath,
    catalog: { date: catalog.date, models: catalog.models(), providers: catalog.providers() },
    servedProviders,
  };
  const thread = createDatabaseThread<AnalysisQuestion, Analysis>({
    script: new URL('./analyst-worker.ts', import.meta.url),
    workerData,
    turns,
    limitMs,
    tooSlow: () =>
      new ApiError(504, 'analysis_timeout', `The analysis takes longer than ${limitMs} ms: use the command line.`),
  });
  return {
    analyse: (job, progress) =>
      thread.ask(job.organizationId, { job, now: clock.now(), bundle: bundle(), progress: progress?.memory }),
    close: () => thread.close(),
  };
}
