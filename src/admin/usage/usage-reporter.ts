import { ApiError } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { createDatabaseThread } from '../../store/db/database-thread.ts';
import type { UsageRequest } from './usage-query.ts';

/** A page of a report, in the format that was asked for. */
export interface ReportedUsage {
  readonly bytes: Uint8Array;
  readonly nextCursor: string | null;
}

export interface UsageWorkerData {
  readonly databasePath: string;
}

/** Sums up calls outside the serving thread. */
export interface UsageReporter {
  /** @throws ApiError: of the request itself, 503 when too many wait, 504 when it takes too long */
  report(request: UsageRequest): Promise<ReportedUsage>;
  close(): Promise<void>;
}

export interface UsageReporterOptions extends UsageWorkerData {
  readonly turns: Turns;
  /** Milliseconds that one page may take. */
  readonly limitMs?: number;
}

export function createUsageReporter({ databasePath, turns, limitMs = 30_000 }: UsageReporterOptions): UsageReporter {
  const workerData: UsageWorkerData = { databasePath };
  const thread = createDatabaseThread<UsageRequest, ReportedUsage>({
    script: new URL('./usage-worker.ts', import.meta.url),
    workerData,
    turns,
    limitMs,
    tooSlow: () =>
      new ApiError(
        504,
        'report_timeout',
        `The report takes longer than ${limitMs} ms: ask for less, or use the command line.`,
      ),
  });
  return { report: (request) => thread.ask(request.organizationId, request), close: () => thread.close() };
}
