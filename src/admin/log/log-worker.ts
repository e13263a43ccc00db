import { workerData } from 'node:worker_threads';
import { openDatabase } from '../../store/db/database.ts';
import { answerQuestions } from '../../store/db/database-thread.ts';
import { type LogQuestion, type LogWorkerData, listEvidence } from './log-reader.ts';
import {
  getCall,
  getLoggedDecision,
  getRefusedRequest,
  listCalls,
  listDecisions,
  listRefusedRequests,
} from './log-view.ts';

const { databasePath }: LogWorkerData = workerData;
const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });

function answer(question: LogQuestion): object {
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

answerQuestions((question: LogQuestion): Uint8Array => new TextEncoder().encode(JSON.stringify(answer(question))));
