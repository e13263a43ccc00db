import { parentPort, workerData } from 'node:worker_threads';
import { createPdp } from '../../policy/pdp.ts';
import { openDatabase } from '../../store/db/database.ts';
import { JUDGE_ENGINE } from '../world/judges.ts';
import { createVerdictJudge, subjectsIn } from './judge-again.ts';
import type { VerdictAnswer, VerdictWorkerData } from './judge-threads.ts';

const { databasePath, bundle, rules }: VerdictWorkerData = workerData;
const judge = createVerdictJudge(openDatabase(databasePath, { readonly: true, busyTimeoutMs: 5000 }), {
  pdp: createPdp(bundle, JUDGE_ENGINE),
  subjectsOf: rules === null ? null : subjectsIn(rules),
});

function answer(ids: readonly number[]): VerdictAnswer {
  try {
    return { judged: [...judge(ids)] };
  } catch (failure) {
    return { failure };
  }
}

parentPort?.on('message', (ids: readonly number[]) => parentPort?.postMessage(answer(ids)));
