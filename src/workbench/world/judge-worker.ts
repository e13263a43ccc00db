import { parentPort, workerData } from 'node:worker_threads';
import { createPdp } from '../../policy/pdp.ts';
import { JUDGE_ENGINE, type JudgeAnswer, type JudgeWorkerData, judgeTask, type SubjectTask } from './judges.ts';
import { createSubjectJudge } from './subject-judge.ts';

const { bundle, mappings }: JudgeWorkerData = workerData;
const judge = createSubjectJudge(createPdp(bundle, JUDGE_ENGINE), mappings);

function answer(tasks: readonly SubjectTask[]): JudgeAnswer {
  try {
    return { changes: tasks.map((task) => judgeTask(judge, task)) };
  } catch (failure) {
    return { failure };
  }
}

parentPort?.on('message', (tasks: readonly SubjectTask[]) => parentPort?.postMessage(answer(tasks)));
