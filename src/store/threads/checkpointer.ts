import { Worker } from 'node:worker_threads';

/** Keeps most of the work of SQLite's checkpoints off the serving thread. */
export interface Checkpointer {
  /** To be told after each transaction. Never throws: what was committed must not seem to have failed. */
  committed(): void;
  close(): Promise<void>;
}

/** Transactions between two looks at the log; one of a busy server writes some 30 pages. */
const LOOK_EVERY = 16;
const MAX_OLD_SPACE_MB = 64;

/**
 * A checkpoint of 4000 pages stops the thread that does it for 20 to 50 ms. A thread with a connection of its own does it while calls go
 * on, as often as there is enough to do. The serving connection's own checkpoint stays: it then finds little left, and it is the
 * one after which the log starts again. The thread starts with the first look, and is not started again when it breaks.
 * @param onFault told once, when there is no thread (any more): the serving connection then checkpoints alone
 */
export function createCheckpointer(path: string, onFault: (error: unknown) => void): Checkpointer {
  let worker: Worker | undefined;
  let transactions = 0;
  /** No thread is wanted: closed, or broken. */
  let over = false;

  function broke(error: unknown): void {
    if (over) return;
    over = true;
    onFault(error);
  }

  function startWorker(): Worker {
    const started = new Worker(new URL('./checkpoint-worker.ts', import.meta.url), {
      workerData: path,
      resourceLimits: { maxOldGenerationSizeMb: MAX_OLD_SPACE_MB },
    });
    started.unref();
    return started.on('error', broke);
  }

  return {
    committed() {
      transactions += 1;
      if (over || transactions < LOOK_EVERY) return;
      transactions = 0;
      try {
        worker ??= startWorker();
        worker.postMessage('look');
      } catch (error) {
        broke(error);
      }
    },
    async close() {
      over = true;
      await worker?.terminate();
    },
  };
}
