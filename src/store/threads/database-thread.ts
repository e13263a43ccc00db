import { Worker } from 'node:worker_threads';
import { ApiError, clientLeft } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { Thread, ThreadTimeout } from '../../lib/thread.ts';
import type { ThreadAnswer } from './answer-questions.ts';

/** A second thread that answers questions about the database, on a connection of its own. */
export interface DatabaseThread<Question, Answer> {
  /** @throws ApiError: the thread's own refusal, 503 when too many wait, 504 when it takes too long */
  ask(organizationId: string, question: Question): Promise<Answer>;
  /**
   * Asks what leads to code of others. The thread ends with the answer, or when nobody waits for it any more.
   * @param prepare makes the question, when it is its turn. @throws as `ask`, 499 when the signal is aborted, and what `prepare` throws
   */
  askApart(organizationId: string, prepare: () => Promise<Question>, signal: AbortSignal): Promise<Answer>;
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
  const thread = new Thread<Question, ThreadAnswer<Answer>>(
    () => new Worker(script, { workerData, resourceLimits: { maxOldGenerationSizeMb: MAX_OLD_SPACE_MB } }),
  );
  let closed = false;

  async function run(question: Question): Promise<Answer> {
    if (closed) throw new ApiError(503, 'overloaded', 'The server is stopping.');
    try {
      return read(await thread.ask(question, { limitMs }));
    } catch (error) {
      if (error instanceof ThreadTimeout) throw tooSlow();
      if (!(error instanceof ApiError) || error.status >= 500) await thread.end(); // It may be broken.
      throw error;
    }
  }

  async function runApart(prepare: () => Promise<Question>, signal: AbortSignal): Promise<Answer> {
    const end = (): void => void thread.end();
    signal.addEventListener('abort', end);
    try {
      signal.throwIfAborted();
      const question = await prepare();
      signal.throwIfAborted();
      return await run(question);
    } catch (error) {
      throw signal.aborted ? clientLeft() : error;
    } finally {
      signal.removeEventListener('abort', end);
      await thread.end();
    }
  }

  return {
    ask: (organizationId, question) => turns.take(organizationId, () => run(question)),
    askApart: (organizationId, prepare, signal) => turns.take(organizationId, () => runApart(prepare, signal)),
    async close() {
      closed = true;
      await thread.end();
    },
  };
}

function read<Answer>(answer: ThreadAnswer<Answer>): Answer {
  if ('answer' in answer) return answer.answer;
  const { status, code, message, param, text } = answer.refusal;
  throw new ApiError(status, code, message, { param, cause: text });
}
