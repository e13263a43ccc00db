import { systemClock } from '../domain/time.ts';
import { type Database, openDatabase } from '../store/db/database.ts';
import { databaseJob } from '../store/db/database-thread.ts';
import { nextReportCounts } from '../store/ledger/call-follower.ts';
import { nextBlock } from '../store/ledger/call-index.ts';
import { nextSeal } from '../store/ledger/call-seals.ts';
import { DecisionFile, type DecisionFileOptions } from './log/decision-file.ts';
import type { FollowQuestion } from './log/follow-calls.ts';
import { type LogQuestion, listEvidence } from './log/log-reader.ts';
import {
  getCall,
  getLoggedDecision,
  getRefusedRequest,
  listCalls,
  listDecisions,
  listRefusedRequests,
} from './log/log-view.ts';
import type { UsageQuestion } from './usage/usage-query.ts';
import { readReportedUsage } from './usage/usage-report.ts';

/** Start data of the thread that reads the database for the log, for usage reports and for what follows calls. */
export interface ReaderData {
  readonly databasePath: string;
  /** Undefined: decisions are not written to a file. */
  readonly decisionFile: DecisionFileOptions | undefined;
}

type ReaderQuestion = LogQuestion | UsageQuestion | FollowQuestion;

export function startJob({ databasePath, decisionFile }: ReaderData) {
  const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });
  const file = decisionFile === undefined ? undefined : new DecisionFile(db, decisionFile);
  return databaseJob((question: ReaderQuestion): object => {
    switch (question.what) {
      case 'usage':
        return readReportedUsage(db, question.request);
      case 'block':
        return { block: nextBlock(db) };
      case 'reports':
        return { reports: nextReportCounts(db) };
      case 'seal':
        return { seal: nextSeal(db, question.isLast ? Number.POSITIVE_INFINITY : systemClock.now()) };
      case 'file':
        return { file: file?.write() };
      default:
        return new TextEncoder().encode(JSON.stringify(logAnswer(db, question)));
    }
  });
}

function logAnswer(db: Database, question: LogQuestion): object {
  switch (question.what) {
    case 'calls':
      return listCalls(db, question);
    case 'decisions':
      return listDecisions(db, question);
    case 'call':
      return { call: getCall(db, question.by, question.id) };
    case 'decision':
      return { decision: getLoggedDecision(db, question.by, question.id) };
    case 'requests':
      return listRefusedRequests(db, question);
    case 'request':
      return { request: getRefusedRequest(db, question.by, question.id) };
    case 'evidence':
      return listEvidence(db, question.request);
  }
}
