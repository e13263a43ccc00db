import { workerData } from 'node:worker_threads';
import { openDatabase } from '../../store/db/database.ts';
import { type IndexBlock, nextBlock } from '../../store/ledger/call-index.ts';
import { answerQuestions } from '../../store/threads/answer-questions.ts';
import type { LogWorkerData } from './log-reader.ts';

const { databasePath }: LogWorkerData = workerData;
const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });

answerQuestions((): IndexBlock | null => nextBlock(db) ?? null);
