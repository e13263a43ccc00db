import { workerData } from 'node:worker_threads';
import { openDatabase } from '../../store/db/database.ts';
import { answerQuestions } from '../../store/db/database-thread.ts';
import type { ReportedUsage, UsageRequest, UsageWorkerData } from './usage-query.ts';
import { usageCsv, usageReport } from './usage-report.ts';

const { databasePath }: UsageWorkerData = workerData;
const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });

answerQuestions((request: UsageRequest): ReportedUsage => {
  const report = usageReport(db, request);
  const text = request.format === 'csv' ? usageCsv(report) : JSON.stringify(report);
  return { bytes: new TextEncoder().encode(text), nextCursor: report.nextCursor };
});
