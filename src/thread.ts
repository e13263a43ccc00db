// Entry of every thread: it loads the module of its one job, and answers questions by it, one at a time.
import os from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { JOBS, type Job, type JobName, type ThreadData, type ThreadReply } from './lib/threads.ts';

interface JobModule {
  /** Called once, before the first question. @param data as `startThread` was given it */
  startJob(data: object): Job<object, unknown>;
}

/** The module of each job of `JOBS` (src/lib/threads.ts). */
const MODULES: Readonly<Record<JobName, () => Promise<JobModule>>> = {
  readAnswers: () => import('./core/answer-job.ts'),
  countTokens: () => import('./providers/tokens/count-tokens.ts'),
  checkpoint: () => import('./store/db/checkpoint-job.ts'),
  readDatabase: () => import('./admin/reader-job.ts'),
  analyse: () => import('./workbench/analysis/analysis-job.ts'),
  judgeSubjects: () => import('./workbench/world/judges.ts'),
  judgeVerdicts: () => import('./workbench/replay/judge-again.ts'),
};

const BELOW_NORMAL = os.constants.priority.PRIORITY_BELOW_NORMAL;

/**
 * Where this thread and the serving one want the same core, calls come first. Only Linux has a priority for each thread; elsewhere it
 * is the process's. A process that was started with a lower one keeps it: to raise it is not allowed.
 */
function yieldToCalls(): void {
  if (process.platform === 'linux' && os.getPriority() < BELOW_NORMAL) os.setPriority(BELOW_NORMAL);
}

const { name, data }: ThreadData = workerData;
if (JOBS[name].yieldsToCalls) yieldToCalls();
const { startJob } = await MODULES[name]();
const job = startJob(data);

async function replyTo(question: object): Promise<void> {
  const handedOver: ArrayBuffer[] = [];
  let reply: ThreadReply<unknown>;
  try {
    reply = { answer: await job.answer(question, handedOver) };
  } catch (failure) {
    reply = { failure };
  }
  if (JOBS[name].answers) parentPort?.postMessage(reply, handedOver);
  else if ('failure' in reply) throw reply.failure;
}

parentPort?.on('message', replyTo);
