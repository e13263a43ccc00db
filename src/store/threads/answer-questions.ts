import { parentPort } from 'node:worker_threads';
import { ApiError } from '../../domain/errors.ts';
import { yieldToOthers } from '../db/yield-to-others.ts';

/** What a thread answers, or the error for the caller; `text` is for the log. */
export type ThreadAnswer<Answer> =
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
