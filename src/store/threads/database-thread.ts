import { Worker } from 'node:worker_threads';
import { ApiError } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import type { ThreadAnswer } from './answer-questions.ts';

/** A second thread that answers questions about the database, on a connection of its own. */
export interface DatabaseThread<Question, Answer> {
  /** @throws ApiError: the thread's own refusal, 503 when too many wait, 504 when it takes too long */
  ask(organizationId: string, question: Question): Promise<Answer>;
  close(): Promise<void>;
}

export interface DatabaseThreadOptions {
  /** Calls `answerQuestions`. */
  readonly script: URL;
  readonly workerData: object;
  /** Shared by all threads of a process: whatever one of them takes, the serving thread and a core stay free. */
  readonly turns: Turns;
  /** Milliseconds that one answer may take. */
  readonly limitMs: number;
  /** What is said of an answer that takes longer. */
  readonly tooSlow: () => ApiError;
}

const MAX_OLD_SPACE_MB = 1024;

/** Starts the thread with the first question, and again when it broke or an answer took too long. */
export function createDatabaseThread<Question extends object, Answer>({
  script,
  workerData,
  turns,
  limitMs,
  tooSlow,
}: DatabaseThreadOptions): DatabaseThread<Question, Answer> {
  let worker: Worker | undefined;
  let closed = false;

  function startWorker(): Worker {
    const started = new Worker(script, { workerData, resourceLimits: { maxOldGenerationSizeMb: MAX_OLD_SPACE_MB } });
    started.unref();
    started.on('error', () => {}); // The waiting side is told by `awaitAnswer`.
    started.once('exit', () => {
      if (worker === started) worker = undefined;
    });
    return started;
  }

  async function run(question: Question): Promise<Answer> {
    if (closed) throw new ApiError(503, 'overloaded', 'The server is stopping.');
    worker ??= startWorker();
    const asked = worker;
    try {
      return read(await awaitAnswer<Answer>(asked, question, { limitMs, tooSlow }));
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) throw error;
      await asked.terminate(); // It may still compute, or be broken.
      throw error;
    }
  }

  return {
    ask: (organizationId, question) => turns.take(organizationId, () => run(question)),
    async close() {
      closed = true;
      await worker?.terminate();
    },
  };
}

/** The worker's answer; rejects when it ends without one, or when it takes too long. */
async function awaitAnswer<Answer>(
  worker: Worker,
  question: object,
  { limitMs, tooSlow }: Pick<DatabaseThreadOptions, 'limitMs' | 'tooSlow'>,
): Promise<ThreadAnswer<Answer>> {
  const { promise, resolve, reject } = Promise.withResolvers<ThreadAnswer<Answer>>();
  const ended = (cause: unknown): void => reject(new Error('The thread ended without an answer.', { cause }));
  const timer = setTimeout(() => reject(tooSlow()), limitMs);
  worker.once('message', resolve).once('error', ended).once('exit', ended);
  worker.postMessage(question);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off('message', resolve).off('error', ended).off('exit', ended);
  }
}

function read<Answer>(answer: ThreadAnswer<Answer>): Answer {
  if ('answer' in answer) return answer.answer;
  const { status, code, message, param, text } = answer.refusal;
  throw new ApiError(status, code, message, { param, cause: text });
}
