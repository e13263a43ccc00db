import { type Database, openDatabase } from '../../store/db/database.ts';
import { databaseJob } from '../../store/db/database-thread.ts';
import { type LogJobData, type LogQuestion, listEvidence } from './log-reader.ts';
import {
  getCall,
  getLoggedDecision,
  getRefusedRequest,
  listCalls,
  listDecisions,
  listRefusedRequests,
} from './log-view.ts';

function answerTo(db: Database, question: LogQuestion): object {
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

export function startJob({ databasePath }: LogJobData) {
  const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });
  return databaseJob(
    (question: LogQuestion): Uint8Array => new TextEncoder().encode(JSON.stringify(answerTo(db, question))),
  );
}
