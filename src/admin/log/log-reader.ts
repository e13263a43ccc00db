import { ApiError } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { createDatabaseThread } from '../../store/db/database-thread.ts';
import type { LogRequest, RefusedListRequest, SeenBy } from './log-query.ts';
import type { EvidenceRequest } from './rule-evidence.ts';

export type LogQuestion =
  | (LogRequest & { readonly what: 'calls' | 'decisions' })
  | { readonly what: 'call' | 'decision' | 'request'; readonly by: SeenBy; readonly id: string }
  | (RefusedListRequest & { readonly what: 'requests' })
  | { readonly what: 'evidence'; readonly request: EvidenceRequest };

export interface LogWorkerData {
  readonly databasePath: string;
}

/** Reads calls and decisions outside the serving thread. */
export interface LogReader {
  /** JSON. @param organizationId of who asks. @throws ApiError: of the question itself, 503 when too many wait, 504 when it takes too long */
  read(organizationId: string, question: LogQuestion): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface LogReaderOptions extends LogWorkerData {
  readonly turns: Turns;
}

const LIMIT_MS = 30_000;

export function createLogReader({ databasePath, turns }: LogReaderOptions): LogReader {
  const workerData: LogWorkerData = { databasePath };
  const thread = createDatabaseThread<LogQuestion, Uint8Array>({
    script: new URL('./log-worker.ts', import.meta.url),
    workerData,
    turns,
    limitMs: LIMIT_MS,
    tooSlow: () =>
      new ApiError(
        504,
        'report_timeout',
        `The search takes longer than ${LIMIT_MS} ms: ask for less, or use the command line.`,
      ),
  });
  return {
    read: thread.ask,
    close: () => thread.close(),
  };
}
