import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { hasNextBlock, type IndexBlock, storeBlock } from '../../store/ledger/call-index.ts';
import type { Store } from '../../store/store.ts';
import { createDatabaseThread } from '../../store/threads/database-thread.ts';
import { errorText, type Telemetry } from '../../telemetry.ts';
import type { LogWorkerData } from './log-reader.ts';

/** Between two blocks: a gateway that was just brought up to date has many. */
const PAUSE_MS = 20;
const LIMIT_MS = 30_000;
/** Among those who take turns. */
const CALLER = 'the index of calls';

interface IndexingDeps extends LogWorkerData {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly turns: Turns;
  readonly telemetry: Pick<Telemetry, 'warn'>;
  /** How often is looked for calls to index, in ms. */
  readonly everyMs?: number;
}

/**
 * The job that indexes calls for the search (call-index.ts), a block at a time: another thread reads it, the writer only puts it down.
 * @returns what ends the job
 */
export function startIndexingCalls({
  databasePath,
  store,
  turns,
  telemetry,
  everyMs = 5000,
}: IndexingDeps): () => Promise<void> {
  const workerData: LogWorkerData = { databasePath };
  const thread = createDatabaseThread<object, IndexBlock | null>({
    script: new URL('./index-worker.ts', import.meta.url),
    workerData,
    turns,
    limitMs: LIMIT_MS,
    tooSlow: () => new ApiError(504, 'report_timeout', `A block of calls took longer than ${LIMIT_MS} ms to read.`),
  });
  let stopped = false;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopped && (await store.read(hasNextBlock))) {
      const block = await thread.ask(CALLER, {});
      if (stopped || block === null) return;
      await store.write((db) => storeBlock(db, block));
      await pause(PAUSE_MS);
    }
  }

  const timer = setInterval(() => {
    running ??= run()
      .catch((error: unknown) => {
        if (!stopped) telemetry.warn('calls were not indexed', { error: errorText(error) });
      })
      .finally(() => {
        running = undefined;
      });
  }, everyMs);
  return async () => {
    stopped = true;
    clearInterval(timer);
    await thread.close();
    await running;
  };
}
