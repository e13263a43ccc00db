import { overloaded } from '../domain/errors.ts';
import { LARGE_BYTES } from '../net/answer-bounds.ts';
import type { ParsedJson } from '../net/event-stream.ts';
import type { GatheredResponse } from '../net/exchange.ts';
import type { SendOptions } from '../net/transport.ts';
import { TransportError } from '../net/transport-error.ts';
import type { Provider } from '../providers/providers.ts';
import { UpstreamError, unreadable } from '../providers/upstream-error.ts';
import { Threads, ThreadsBusy } from '../threads.ts';
import type { AnswerQuestion, AnswerReply, EventQuestion } from './answer-worker.ts';
import { type AnswerKind, type ReadAnswer, readAnswer } from './read-answer.ts';

/** Reads what providers answer, on other threads where that would stop the serving one. */
export interface Answers {
  /** A 2xx answer that came whole. @throws UpstreamError, ApiError 503 where too many answers wait or memory is short */
  read(provider: Provider, kind: AnswerKind, response: GatheredResponse, options: SendOptions): Promise<ReadAnswer>;
  /** JSON of more than 64 KiB. @throws TransportError for what holds too much; ApiError 503 */
  parse(json: Buffer, options: Pick<SendOptions, 'share' | 'signal'>): Promise<ParsedJson>;
  close(): Promise<void>;
}

export interface AnswersOptions {
  /** Milliseconds for one answer. */
  readonly limitMs?: number;
}

/** Two, so that one organization's large answers do not keep another's waiting. */
const THREADS = 2;
const MAX_WAITING = 256;
const MAX_OLD_SPACE_MB = 512;

export function createAnswers({ limitMs = 10_000 }: AnswersOptions = {}): Answers {
  const threads = new Threads<AnswerQuestion | EventQuestion, AnswerReply>({
    script: new URL('./answer-worker.ts', import.meta.url),
    most: THREADS,
    maxWaiting: MAX_WAITING,
    limitMs,
    maxOldSpaceMb: MAX_OLD_SPACE_MB,
  });

  async function ask(
    question: AnswerQuestion | EventQuestion,
    bytes: Buffer,
    { share, signal }: Pick<SendOptions, 'share' | 'signal'>,
  ): Promise<AnswerReply> {
    try {
      return await threads.ask(question, { share, signal, bytes });
    } catch (error) {
      if (error instanceof ThreadsBusy) throw overloaded(error);
      if (signal.aborted) throw new TransportError('aborted', 'the caller went away', { sent: true });
      throw new TransportError('bad_response', 'it could not be read', { cause: error });
    }
  }

  async function readElsewhere(
    { wire }: Provider,
    kind: AnswerKind,
    { status, headers, body }: GatheredResponse,
    options: SendOptions,
  ): Promise<ReadAnswer> {
    const reply = await ask({ wire, kind, status, headers, body }, body, options);
    if ('answer' in reply) {
      options.room(reply.answer.json.length);
      return reply.answer;
    }
    if (!('failure' in reply)) throw new Error('a thread answered another question');
    const { errorType, message, ...facts } = reply.failure;
    throw new UpstreamError(errorType, message, facts);
  }

  return {
    async read(provider, kind, response, options) {
      if (response.body.length > LARGE_BYTES) return readElsewhere(provider, kind, response, options);
      try {
        return readAnswer(provider.adapter, kind, response);
      } catch (error) {
        throw error instanceof UpstreamError ? error : unreadable(error);
      }
    },
    async parse(json, options) {
      const reply = await ask({ event: json }, json, options);
      if ('parsed' in reply) return reply.parsed;
      throw new TransportError('too_large', 'an event of the stream is too large');
    },
    close: () => threads.close(),
  };
}
