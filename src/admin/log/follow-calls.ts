import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '../../domain/errors.ts';
import type { DatabaseThread } from '../../store/db/database-thread.ts';
import {
  hasUncounted,
  passUnreported,
  type ReportCounts,
  storeReportCounts,
} from '../../store/ledger/call-follower.ts';
import { hasNextBlock, type IndexBlock, storeBlock } from '../../store/ledger/call-index.ts';
import { hasUnsealed, type NextSeal, storeSeal } from '../../store/ledger/call-seals.ts';
import type { Store } from '../../store/store.ts';
import { errorText, type Telemetry } from '../../telemetry/telemetry.ts';
import type { FileProgress } from './decision-file.ts';

/** Between two pieces of work, in ms: a gateway that was just brought up to date has many. */
const PAUSE_MS = 20;
const LIMIT_MS = 30_000;
/** Longest time for the last look when the job ends, in ms. */
const LAST_MS = 10_000;
/** Among those who take turns. */
const CALLER = 'what follows calls';

export interface FollowQuestion {
  readonly what: 'block' | 'reports' | 'file' | 'seal';
  /** The server stops: a block is closed however short it is. */
  readonly isLast?: boolean;
}

const tooSlow = (): ApiError => new ApiError(504, 'report_timeout', `Following calls took longer than ${LIMIT_MS} ms.`);

/** The answer to a `FollowQuestion`, in the field of its kind; the field is undefined if there is nothing to do. */
interface FollowAnswer {
  readonly block?: IndexBlock | undefined;
  readonly reports?: ReportCounts | undefined;
  readonly file?: FileProgress | undefined;
  readonly seal?: NextSeal | undefined;
}

interface FollowingDeps {
  readonly reader: DatabaseThread;
  /** Whether decisions are written to a file. */
  readonly hasDecisionFile: boolean;
  /** Writes the head of the audit log where it has moved; undefined: it is written nowhere. */
  readonly writeHead: (() => Promise<void>) | undefined;
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly telemetry: Pick<Telemetry, 'warn' | 'info' | 'reported' | 'decisionsFiled'>;
  /** Time between two looks for calls to index and to count, in ms. */
  readonly everyMs?: number;
  /** Time between two looks for calls to write to the file, in ms. */
  readonly fileEveryMs?: number;
}

/**
 * The job that follows calls, so that they pay for none of it: it indexes them for the search, counts what report rules would have
 * changed, and writes decisions to a file. Another thread reads them, a piece at a time; the writer only puts down the result.
 * @returns what ends the job, when what is over by then was counted and written
 */
export function startFollowingCalls({
  reader,
  hasDecisionFile,
  writeHead,
  store,
  telemetry,
  everyMs = 5000,
  fileEveryMs = 1000,
}: FollowingDeps): () => Promise<void> {
  const ask = (what: FollowQuestion['what'], isLast = false): Promise<FollowAnswer> => {
    const question: FollowQuestion = { what, isLast };
    return reader.ask(CALLER, question, { limitMs: LIMIT_MS, tooSlow });
  };

  async function index(isStopped: () => boolean): Promise<void> {
    while (!isStopped() && (await store.read(hasNextBlock))) {
      const { block } = await ask('block');
      if (isStopped() || block === undefined) return;
      await store.write((db) => storeBlock(db, block));
      await pause(PAUSE_MS);
    }
  }

  async function count(isStopped: () => boolean): Promise<void> {
    if (!(await store.read(hasUncounted)) || !(await store.write(passUnreported))) return;
    for (let isBehind = true; isBehind; isBehind &&= !isStopped()) {
      const { reports } = await ask('reports');
      if (reports === undefined) return;
      await store.write((db) => storeReportCounts(db, reports));
      for (const each of reports.rules) telemetry.reported(each);
      isBehind = reports.isBehind;
      await pause(PAUSE_MS);
    }
  }

  async function seal(isStopped: () => boolean): Promise<void> {
    while (await store.read(hasUnsealed)) {
      const { seal: next } = await ask('seal', isStopped());
      if (next === undefined) return;
      await store.write((db, now) => storeSeal(db, next, now));
      await pause(PAUSE_MS);
    }
  }

  let fault: string | undefined;
  async function writeFile(): Promise<void> {
    for (let isBehind = true; isBehind; ) {
      const { file } = await ask('file');
      if (file === undefined) return;
      telemetry.decisionsFiled(file);
      if (file.fault !== undefined && fault === undefined) {
        telemetry.warn('DECISION_LOG_FILE cannot be written; it is tried again', { error: file.fault });
      }
      if (file.fault === undefined && fault !== undefined) telemetry.info('DECISION_LOG_FILE is written again');
      fault = file.fault;
      isBehind = file.isBehind;
    }
  }

  const onError = (error: unknown): void => telemetry.warn('calls were not followed', { error: errorText(error) });
  const onHeadError = (error: unknown): void =>
    telemetry.warn('AUDIT_HEAD_FILE cannot be written; it is tried again', { error: errorText(error) });
  const jobs = [
    repeat(everyMs, onError, async (isStopped) => {
      await count(isStopped);
      await index(isStopped);
      await seal(isStopped);
      await writeHead?.().catch(onHeadError);
    }),
    ...(hasDecisionFile ? [repeat(fileEveryMs, onError, writeFile)] : []),
  ];
  return async () => {
    await Promise.race([Promise.all(jobs.map((end) => end())), pause(LAST_MS, undefined, { ref: false })]);
  };
}

/**
 * Repeats work, one piece at a time. @returns what ends it, after it was done for the last time
 * @param work can ask whether it should end soon
 */
function repeat(
  everyMs: number,
  onError: (error: unknown) => void,
  work: (isStopped: () => boolean) => Promise<void>,
): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> | undefined;
  const start = (): Promise<void> => {
    running ??= work(() => stopped)
      .catch(onError)
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  const timer = setInterval(start, everyMs);
  return async () => {
    stopped = true;
    clearInterval(timer);
    await running;
    await start();
  };
}
