import type { PolicyRule } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import { type Job, startThread, Thread } from '../../lib/threads.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { createPdp } from '../../policy/pdp.ts';
import { createSubjectJudge, type SubjectChange, type SubjectJudge, subjectChange } from './subject-judge.ts';

/** One subject's rules to judge: on both sides of a change, or the same rules twice. */
export interface SubjectTask {
  readonly before: readonly PolicyRule[];
  readonly after: readonly PolicyRule[];
}

/** Told after each piece of work. */
export type OnProgress = (done: number, all: number) => void;

/** Judges many subjects, in the order of the tasks. Rejects with what the evaluation threw. */
export interface Judges {
  readonly mappings: readonly Mapping[];
  judge(tasks: readonly SubjectTask[], onProgress?: OnProgress): Promise<SubjectChange[]>;
  close(): Promise<void>;
}

/** Start data of a judging thread. */
interface JudgeJobData {
  readonly bundle: PolicyBundle;
  readonly mappings: readonly Mapping[];
}

/** Documents are judged one after the other, so few need to stay loaded. */
export const JUDGE_ENGINE = { maxInstances: 4 } as const;
/** Tasks that a thread is given at once: few, so that both end together and progress shows; tasks of one subject are alike. */
const CHUNK = 24;
/** Below this a thread takes longer to start than to help. */
const WORTH_THREADS = 64;

/** @param threads that judge in addition to this one; 0: this one judges */
export function createJudges(bundle: PolicyBundle, mappings: readonly Mapping[], threads: number): Judges {
  const here = createHere(bundle, mappings);
  const workers: Thread[] = [];
  return {
    mappings,
    async judge(tasks, onProgress) {
      if (threads === 0 || tasks.length < WORTH_THREADS) return here.judge(tasks, onProgress);
      while (workers.length < threads)
        workers.push(new Thread(() => startThread('judgeSubjects', { bundle, mappings })));
      return judgeByThreads(workers, tasks, onProgress);
    },
    async close() {
      here.close();
      await Promise.all(workers.map((worker) => worker.end()));
    },
  };
}

function createHere(bundle: PolicyBundle, mappings: readonly Mapping[]) {
  const pdp = createPdp(bundle, JUDGE_ENGINE);
  const judge = createSubjectJudge(pdp, mappings);
  return {
    judge: (tasks: readonly SubjectTask[], onProgress: OnProgress | undefined) =>
      tasks.map((task, index) => {
        const change = judgeTask(judge, task);
        onProgress?.(index + 1, tasks.length);
        return change;
      }),
    close: () => pdp.close(),
  };
}

/** @throws PolicyFailure */
function judgeTask(judge: SubjectJudge, { before, after }: SubjectTask): SubjectChange {
  if (before !== after) return subjectChange(judge, before, after);
  const access = judge.access(before);
  return { before: access, after: access, mappingCauses: [], addressCauses: [] };
}

async function judgeByThreads(
  workers: readonly Thread[],
  tasks: readonly SubjectTask[],
  onProgress: OnProgress | undefined,
): Promise<SubjectChange[]> {
  const changes: SubjectChange[] = [];
  let [next, done] = [0, 0];
  const work = async (worker: Thread): Promise<void> => {
    while (next < tasks.length) {
      const start = next;
      next += CHUNK;
      const answers = await worker.ask<readonly SubjectChange[]>(tasks.slice(start, start + CHUNK));
      for (const [index, change] of answers.entries()) changes[start + index] = change;
      done += answers.length;
      onProgress?.(done, tasks.length);
    }
  };
  await Promise.all(workers.map(work));
  return changes;
}

export function startJob({ bundle, mappings }: JudgeJobData): Job<readonly SubjectTask[], readonly SubjectChange[]> {
  const judge = createSubjectJudge(createPdp(bundle, JUDGE_ENGINE), mappings);
  return { answer: (tasks) => tasks.map((task) => judgeTask(judge, task)) };
}
