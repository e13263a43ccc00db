import { ApiError, clientLeft } from '../../domain/errors.ts';
import { Turns } from '../../domain/turns.ts';
import { type Job, type JobName, startThread, Thread, ThreadTimeout } from '../../lib/threads.ts';

interface DatabaseThreadOptions {
  /** Its `startJob` returns what `databaseJob` makes. */
  readonly job: JobName;
  readonly data: object;
  /** One question at a time unless these say otherwise. */
  readonly turns?: Turns;
}

/** Limits of one answer. */
export interface AnswerLimits {
  readonly limitMs: number;
  /** The error for an answer that takes longer. */
  readonly tooSlow: () => ApiError;
}

/**
 * A second thread that answers questions about the database, on a connection of its own. It starts with the first question, and
 * again when it broke or an answer took too long.
 */
export class DatabaseThread {
  readonly #thread: Thread;
  readonly #turns: Turns;
  #closed = false;

  constructor({ job, data, turns = new Turns() }: DatabaseThreadOptions) {
    this.#thread = new Thread(() => startThread(job, data));
    this.#turns = turns;
  }

  /** @throws ApiError: the job's own refusal, 503 when too many wait, 504 when it takes too long */
  ask<Answer>(organizationId: string, question: object, limits: AnswerLimits): Promise<Answer> {
    return this.#turns.take(organizationId, () => this.#run<Answer>(question, limits));
  }

  /**
   * Asks what leads to third-party code. The thread ends with the answer, or when nobody waits for it any more.
   * @param prepare makes the question, when it is its turn. @throws as `ask`, 499 when the signal is aborted, and what `prepare` throws
   */
  askApart<Answer>(
    organizationId: string,
    prepare: () => Promise<object>,
    limits: AnswerLimits & { readonly signal: AbortSignal },
  ): Promise<Answer> {
    return this.#turns.take(organizationId, () => this.#runApart<Answer>(prepare, limits));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#thread.end();
  }

  async #run<Answer>(question: object, { limitMs, tooSlow }: AnswerLimits): Promise<Answer> {
    if (this.#closed) throw new ApiError(503, 'overloaded', 'The server is stopping.');
    try {
      return read(await this.#thread.ask<ThreadAnswer<Answer>>(question, { limitMs }));
    } catch (error) {
      if (error instanceof ThreadTimeout) throw tooSlow();
      if (!(error instanceof ApiError) || error.status >= 500) await this.#thread.end(); // It may be broken.
      throw error;
    }
  }

  async #runApart<Answer>(
    prepare: () => Promise<object>,
    { signal, ...limits }: AnswerLimits & { readonly signal: AbortSignal },
  ): Promise<Answer> {
    const end = (): void => void this.#thread.end();
    signal.addEventListener('abort', end);
    try {
      signal.throwIfAborted();
      const question = await prepare();
      signal.throwIfAborted();
      return await this.#run(question, limits);
    } catch (error) {
      throw signal.aborted ? clientLeft() : error;
    } finally {
      signal.removeEventListener('abort', end);
      await this.#thread.end();
    }
  }
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
