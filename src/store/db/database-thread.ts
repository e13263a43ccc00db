import { ApiError, clientLeft } from '../../domain/errors.ts';
import type { Turns } from '../../domain/turns.ts';
import { type Job, type JobName, startThread, Thread, ThreadTimeout } from '../../lib/threads.ts';

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
  /** Its `startJob` returns what `databaseJob` makes. */
  readonly job: JobName;
  readonly data: object;
  /** Shared by all threads of a process: whatever one of them takes, the serving thread and a core stay free. */
  readonly turns: Turns;
  /** Milliseconds that one answer may take. */
  readonly limitMs: number;
  /** The error for an answer that takes longer. */
  readonly tooSlow: () => ApiError;
}

/** Starts the thread with the first question, and again when it broke or an answer took too long. */
export function createDatabaseThread<Question extends object, Answer>({
  job,
  data,
  turns,
  limitMs,
  tooSlow,
}: DatabaseThreadOptions): DatabaseThread<Question, Answer> {
  const thread = new Thread<Question, ThreadAnswer<Answer>>(() => startThread(job, data));
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
 * The other end of a `DatabaseThread`: errors reach the caller as `ApiError`s.
 * @param toApiError the error for the caller for the job's own kinds of errors; undefined: a 500
 */
export function databaseJob<Question extends object, Answer>(
  answer: (question: Question) => Answer | Promise<Answer>,
  toApiError: (error: unknown) => ApiError | undefined = () => undefined,
): Job<Question, ThreadAnswer<Answer>> {
  return {
    async answer(question) {
      try {
        return { answer: await answer(question) };
      } catch (error) {
        const refusal = error instanceof ApiError ? error : (toApiError(error) ?? internalError(error));
        const { status, code, message, param, cause } = refusal;
        return { refusal: { status, code, message, param, text: cause instanceof Error ? cause.stack : undefined } };
      }
    },
  };
}
