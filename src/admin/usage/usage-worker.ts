import { workerData } from 'node:worker_threads';
import { openDatabase } from '../../store/db/database.ts';
import { answerQuestions } from '../../store/db/database-thread.ts';
import { usageCsv } from './usage-csv.ts';
import type { UsageRequest } from './usage-query.ts';
import { usageReport } from './usage-report.ts';
import type { ReportedUsage, UsageWorkerData } from './usage-reporter.ts';

const { databasePath }: UsageWorkerData = workerData;
const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });

answerQuestions((request: UsageRequest): ReportedUsage => {
  const report = usageReport(db, request);
  const text = request.format === 'csv' ? usageCsv(report) : JSON.stringify(report);
  return { bytes: new TextEncoder().encode(text), nextCursor: report.nextCursor };
});
