import { Worker } from 'node:worker_threads';
import type { Catalog } from '../catalog/catalog.ts';
import { ApiError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import type { AnalysisAnswer, AnalysisJob, AnalystWorkerData } from './analysis-job.ts';

/** An analysis as bytes of JSON, with what it was judged by. */
export interface Analysis {
  readonly json: Uint8Array;
  readonly policyRevision: string;
}

/** Analyses the rules of one organization beside the serving thread. */
export interface Analyst {
  /** @throws ApiError: of the analysis itself, 503 when too many wait, 504 when it takes too long; PolicyFailure's are 503 */
  analyse(job: AnalysisJob): Promise<Analysis>;
  close(): Promise<void>;
}

export interface AnalystOptions {
  readonly databasePath: string;
  readonly catalog: Catalog;
  /** Ids of the providers that the operator has a credential for, or that need none. */
  readonly servedProviders: readonly string[];
  readonly clock: Clock;
  /** Milliseconds that one analysis may take. */
  readonly limitMs?: number;
  /** Analyses that may wait for the one that runs. */
  readonly maxWaiting?: number;
}

const MAX_OLD_SPACE_MB = 1024;

/** One thread, one analysis at a time: whatever it takes, the serving thread and a core stay free. */
export function createAnalyst({
  databasePath,
  catalog,
  servedProviders,
  clock,
  limitMs = 30_000,
  maxWaiting = 8,
}: AnalystOptions): Analyst {
  const workerData: AnalystWorkerData = {
    databasePath,
    catalog: { date: catalog.date, models: catalog.models(), providers: catalog.providers() },
    servedProviders,
  };
  let worker: Worker | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let unfinished = 0;
  let closed = false;

  function startWorker(): Worker {
    const started = new Worker(new URL('./analyst-worker.ts', import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: MAX_OLD_SPACE_MB },
    });
    started.unref();
    started.on('error', () => {}); // Whoever waits is told by `ask`.
    started.once('exit', () => {
      if (worker === started) worker = undefined;
    });
    return started;
  }

  async function run(job: AnalysisJob): Promise<Analysis> {
    if (closed) throw new ApiError(503, 'overloaded', 'The server is stopping.');
    worker ??= startWorker();
    const asked = worker;
    try {
      return read(await ask(asked, { job, now: clock.now() }, limitMs));
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) throw error;
      await asked.terminate(); // It may still compute, or be broken.
      throw error;
    }
  }

  return {
    async analyse(job) {
      if (unfinished > maxWaiting) throw busy();
      unfinished += 1;
      const result = last.then(() => run(job));
      last = result.catch(() => {});
      try {
        return await result;
      } finally {
        unfinished -= 1;
      }
    },
    async close() {
      closed = true;
      await worker?.terminate();
    },
  };
}

const busy = (): ApiError =>
  new ApiError(503, 'overloaded', 'Too many analyses are waiting. Try again shortly.', {
    headers: { 'retry-after': '5' },
  });

/** The worker's answer; rejects when it ends without one, or when it takes too long. */
async function ask(worker: Worker, message: object, limitMs: number): Promise<AnalysisAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<AnalysisAnswer>();
  const ended = (cause: unknown): void => reject(new Error('The analysis ended without an answer.', { cause }));
  const timer = setTimeout(
    () =>
      reject(
        new ApiError(504, 'analysis_timeout', `The analysis takes longer than ${limitMs} ms: use the command line.`),
      ),
    limitMs,
  );
  worker.once('message', resolve).once('error', ended).once('exit', ended);
  worker.postMessage(message);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off('message', resolve).off('error', ended).off('exit', ended);
  }
}

function read(answer: AnalysisAnswer): Analysis {
  if ('json' in answer) return answer;
  const { status, code, message, param, text } = answer.refusal;
  throw new ApiError(status, code, message, { param, cause: text });
}
