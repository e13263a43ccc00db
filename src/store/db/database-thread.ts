import os from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { ApiError, clientLeft } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { Thread, ThreadTimeout } from '../../lib/threads.ts';

/** A second thread that answers questions about the database, on a connection of its own. */
interface DatabaseThread<Question, Answer> {
  /** @throws ApiError: the thread's own refusal, 503 when too many wait, 504 when it takes too long */
  ask(organizationId: string, question: Question): Promise<Answer>;
  /**
   * Asks what leads to code of others. The thread ends with the answer, or when nobody waits for it any more.
   * @param prepare makes the question, when it is its turn. @throws as `ask`, 499 when the signal is aborted, and what `prepare` throws
   */
  askApart(organizationId: string, prepare: () => Promise<Question>, signal: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
}

interface DatabaseThreadOptions {
  /** Calls `answerQuestions`. */
  readonly script: URL;
  readonly workerData: object;
  /** Shared by all threads of a process: whatever one of them takes, the serving thread and a core stay free. */
  readonly turns: Turns;
  /** Milliseconds that one answer may take. */
  readonly limitMs: number;
  /** The error for an answer that takes longer. */
  readonly tooSlow: () => ApiError;
}

/** A thread that reads rows has few new objects at once; without a bound each keeps up to 48 MB for them. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 8 };

/** Starts the thread with the first question, and again when it broke or an answer took too long. */
export function createDatabaseThread<Question extends object, Answer>({
  script,
  workerData,
  turns,
  limitMs,
  tooSlow,
}: DatabaseThreadOptions): DatabaseThread<Question, Answer> {
  const thread = new Thread<Question, ThreadAnswer<Answer>>(
    () => new Worker(script, { workerData, resourceLimits: RESOURCE_LIMITS }),
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

/** A thread's answer, or the error for the caller; `text` is for the log. */
type ThreadAnswer<Answer> =
  | { readonly answer: Answer }
  | {
      readonly refusal: {
        readonly status: number;
        readonly code: string;
        readonly message: string;
        readonly param: string | null;
        readonly text: string | undefined;
      };
    };

const internalError = (error: unknown): ApiError =>
  new ApiError(500, 'internal_error', 'An internal error occurred.', { cause: error });

/**
 * The other end of a `DatabaseThread`: answers what it is sent, one question at a time.
 * @param toApiError the error for the caller for the thread's own kinds of errors; undefined: a 500
 */
export function answerQuestions<Question, Answer>(
  answer: (question: Question) => Answer | Promise<Answer>,
  toApiError: (error: unknown) => ApiError | undefined = () => undefined,
): void {
  async function tryAnswer(question: Question): Promise<ThreadAnswer<Answer>> {
    try {
      return { answer: await answer(question) };
    } catch (error) {
      const refusal = error instanceof ApiError ? error : (toApiError(error) ?? internalError(error));
      const { status, code, message, param, cause } = refusal;
      return { refusal: { status, code, message, param, text: cause instanceof Error ? cause.stack : undefined } };
    }
  }
  yieldToOthers();
  parentPort?.on('message', (question: Question) => {
    void tryAnswer(question).then((answered) => parentPort?.postMessage(answered));
  });
}

const BELOW_NORMAL = os.constants.priority.PRIORITY_BELOW_NORMAL;

/**
 * For threads other than the serving one: where both want the same core, calls come first. Only Linux has a priority for each thread;
 * elsewhere it is the process's. A process that was started with a lower one keeps it: to raise it is not allowed.
 */
export function yieldToOthers(): void {
  if (process.platform === 'linux' && os.getPriority() < BELOW_NORMAL) os.setPriority(BELOW_NORMAL);
}
