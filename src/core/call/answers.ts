import { Worker } from 'node:worker_threads';
import { exceededBound } from '../../lib/json-bounds.ts';
import { Threads, ThreadsBusy } from '../../lib/threads.ts';
import { noRoom, SMALL_BYTES } from '../../net/answer-bounds.ts';
import type { ParsedJson } from '../../net/event-stream.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { SendOptions } from '../../net/transport.ts';
import { TransportError } from '../../net/transport-error.ts';
import { ANSWER_BOUNDS } from '../../providers/wire/json.ts';
import { UpstreamError } from '../../providers/wire/upstream-error.ts';
import type { Target } from '../models/reach.ts';
import type { AnswerQuestion, AnswerReply, EventQuestion } from './answer-worker.ts';
import { type AnswerKind, type ReadAnswer, readAnswer } from './read-answer.ts';

/** Reads what providers answer, on other threads where that would stop the serving one. */
export interface Answers {
  /** A 2xx answer that came whole. @throws UpstreamError, TransportError, ApiError 503 where too many answers wait */
  read(target: Target, kind: AnswerKind, response: GatheredResponse, options: SendOptions): Promise<ReadAnswer>;
  /** JSON of more than 64 KiB. @throws TransportError for what holds too much; ApiError 503 */
  parse(json: Buffer, options: Pick<SendOptions, 'share' | 'signal'>): Promise<ParsedJson>;
  close(): Promise<void>;
}

export interface AnswersOptions {
  /** Milliseconds for one answer. */
  readonly limitMs?: number;
}

/** A whole answer up to here is read where it arrives if it holds no more values than are parsed in 10 ms. */
const READ_HERE_BYTES = 1024 * 1024;
const READ_HERE_BOUNDS = { ...ANSWER_BOUNDS, values: 20_000 };

/** Two, so that one organization's large answers do not keep another's waiting. */
const THREADS = 2;
const MAX_WAITING = 256;
/** The young generation would take three times as much by default, and their work gains nothing by it. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 };

/** True for what would stop the serving thread. A small answer is not even looked at. */
const isLarge = ({ body }: GatheredResponse): boolean =>
  body.length > SMALL_BYTES && (body.length > READ_HERE_BYTES || exceededBound(body, READ_HERE_BOUNDS) !== undefined);

/** It was produced, and is paid for; another provider's answer would be no smaller. */
const tooMuch = (): TransportError => new TransportError('too_large', 'the answer holds too much', { sent: true });

export function createAnswers({ limitMs = 10_000 }: AnswersOptions = {}): Answers {
  const threads = new Threads<AnswerQuestion | EventQuestion, AnswerReply>({
    start: () => new Worker(new URL('./answer-worker.ts', import.meta.url), { resourceLimits: RESOURCE_LIMITS }),
    most: THREADS,
    maxWaiting: MAX_WAITING,
    limitMs,
  });

  async function ask(
    question: AnswerQuestion | EventQuestion,
    bytes: Buffer,
    { share, signal }: Pick<SendOptions, 'share' | 'signal'>,
  ): Promise<AnswerReply> {
    try {
      return await threads.ask(question, { share, signal, bytes });
    } catch (error) {
      if (error instanceof ThreadsBusy) throw noRoom(error);
      if (signal.aborted) throw new TransportError('aborted', 'the caller went away', { sent: true });
      throw new TransportError('bad_response', 'it could not be read', { cause: error });
    }
  }

  async function readElsewhere(
    { provider, credential }: Target,
    kind: AnswerKind,
    { status, headers, body }: GatheredResponse,
    options: SendOptions,
  ): Promise<ReadAnswer> {
    const question = { wire: provider.wire, kind, secret: credential.secret, status, headers, body };
    const reply = await ask(question, body, options);
    if ('exceeded' in reply) throw tooMuch();
    if ('answer' in reply) {
      options.room(reply.answer.json.reduce((sum, { length }) => sum + length, 0));
      return reply.answer;
    }
    if (!('failure' in reply)) throw new Error('a thread answered another question');
    const { errorType, summary, ...facts } = reply.failure;
    throw new UpstreamError(errorType, summary, facts);
  }

  return {
    async read(target, kind, response, options) {
      if (isLarge(response)) return readElsewhere(target, kind, response, options);
      try {
        return readAnswer(target.provider.adapter, kind, response, target.credential.secret);
      } catch (error) {
        if (exceededBound(response.body, ANSWER_BOUNDS) !== undefined) throw tooMuch();
        throw error;
      }
    },
    async parse(json, options) {
      const reply = await ask({ event: json }, json, options);
      if ('parsed' in reply) return reply.parsed;
      throw new TransportError('too_large', 'an event of the stream is too large', { sent: true });
    },
    close: () => threads.close(),
  };
}
