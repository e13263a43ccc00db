import { setTimeout as pause } from 'node:timers/promises';
import { numbersFrom } from '../../domain/id.ts';
import { type Clock, DAY, formatTime, HOUR } from '../../domain/time.ts';
import { giveUpBlocks, sealBefore } from '../../store/ledger/call-seals.ts';
import { forgetCalls, forgetReferences } from '../../store/ledger/retention.ts';
import type { Store } from '../../store/store.ts';
import { errorText, type Telemetry } from '../../telemetry/telemetry.ts';

/** Rows in one transaction: a few milliseconds, so that deleting a year holds up nobody's call. */
const CHUNK = 100;
/** Between two transactions, in ms: deleting takes a small part of the writer's time. */
const PAUSE = 20;

interface ForgettingDeps {
  readonly store: Pick<Store, 'write'>;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'info' | 'warn'>;
}

/**
 * The job behind `RETENTION_DAYS`: deletes calls, with their decisions, that are older than so many days, at once and then every hour. A run
 * that the database cannot take is made up for by the next. @returns what ends the job
 */
export function startForgettingCalls(days: number, { store, clock, telemetry }: ForgettingDeps): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> | undefined;

  async function forget(before: number, chunkOf: typeof forgetCalls): Promise<number> {
    let count = 0;
    while (!stopped) {
      const deleted = await store.write((db) => chunkOf(db, before, CHUNK));
      if (deleted === 0) break;
      count += deleted;
      await pause(PAUSE);
    }
    return count;
  }

  /** Whole blocks alone are deleted; most are sealed by then. */
  async function giveUp(before: number): Promise<void> {
    while (!stopped && (await store.write((db, now) => sealBefore(db, numbersFrom(before), now)))) await pause(PAUSE);
    await store.write((db, now) => giveUpBlocks(db, numbersFrom(before), now));
  }

  async function run(): Promise<void> {
    const now = clock.now();
    const before = now - (now % HOUR) - days * DAY;
    await giveUp(before);
    const calls = await forget(before, forgetCalls);
    await forget(before, forgetReferences);
    if (calls > 0) {
      telemetry.info('deleted what is older than RETENTION_DAYS', { calls, before: formatTime(before) });
    }
  }

  const start = (): void => {
    running ??= run()
      .catch((error: unknown) => telemetry.warn('old calls were not deleted', { error: errorText(error) }))
      .finally(() => {
        running = undefined;
      });
  };
  start();
  const timer = setInterval(start, HOUR);
  return async () => {
    stopped = true;
    clearInterval(timer);
    await running;
  };
}
