import { startThread, Thread } from '../../lib/threads.ts';
import type { RuleWorld, World } from '../world/world.ts';
import type { JudgedVerdict, VerdictJobData } from './judge-again.ts';

/** Below so many verdicts a thread takes longer to start than to help. */
export const WORTH_VERDICT_THREADS = 5000;
/** Verdicts that a thread is given at once. */
const CHUNK = 1000;

/** The rules of a world, and no credentials, for a thread. */
export const ruleWorldOf = ({ organizations, groups, members, keys }: World): RuleWorld => ({
  organizations: new Map([...organizations].map(([id, each]) => [id, { ...each, providers: null }])),
  groups,
  members,
  keys,
});

/** Judges verdicts by threads, in the order of the ids, as `createVerdictJudge` does in this one. */
export async function* judgeVerdictsByThreads(
  data: VerdictJobData,
  ids: readonly number[],
  threads: number,
): AsyncGenerator<JudgedVerdict> {
  const pieces = Array.from({ length: Math.ceil(ids.length / CHUNK) }, (_, at) => {
    const answer = Promise.withResolvers<readonly JudgedVerdict[]>();
    answer.promise.catch(() => {}); // The loop below awaits it.
    return { ids: ids.slice(at * CHUNK, (at + 1) * CHUNK), answer };
  });
  const waiting = [...pieces];
  const workers = Array.from({ length: threads }, () => new Thread(() => startThread('judgeVerdicts', data)));
  for (const worker of workers) void work(worker, waiting);
  try {
    for (const { answer } of pieces) yield* await answer.promise;
  } finally {
    waiting.length = 0;
    await Promise.all(workers.map((worker) => worker.end()));
  }
}

interface Piece {
  readonly ids: readonly number[];
  readonly answer: PromiseWithResolvers<readonly JudgedVerdict[]>;
}

async function work(worker: Thread, waiting: Piece[]): Promise<void> {
  for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) {
    try {
      piece.answer.resolve(await worker.ask<readonly JudgedVerdict[]>(piece.ids));
    } catch (error) {
      piece.answer.reject(error);
    }
  }
}
