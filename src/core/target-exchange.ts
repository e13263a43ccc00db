import { ApiError } from '../domain/errors.ts';
import type { RoutingAttempt } from '../generated/types.ts';
import { exceededBound } from '../lib/json.ts';
import { startThread, Threads, ThreadsBusy } from '../lib/threads.ts';
import type { ParsedJson } from '../net/event-stream.ts';
import type { GatheredResponse, OutboundResponse } from '../net/exchange.ts';
import type { OutboundRequest, SendOptions, Transport } from '../net/transport.ts';
import { noRoom, SMALL_BYTES, TransportError } from '../net/transport-error.ts';
import type { Adapter, Endpoint, WholeTranslation } from '../providers/wire/adapter.ts';
import { ANSWER_BOUNDS, parseJson } from '../providers/wire/fields.ts';
import { fromTransportError, UpstreamError, unreadable } from '../providers/wire/upstream-error.ts';
import type { AttemptFailure } from '../telemetry/telemetry.ts';
import type { AnswerQuestion, AnswerReply, EventQuestion } from './answer-job.ts';
import { type AnswerKind, type ReadAnswer, readAnswer } from './provider-answer.ts';
import type { Target } from './reach.ts';

interface ExchangeDeps {
  readonly transport: Transport;
  readonly answers: Answers;
}

/** Within what one exchange must be over, and what it may take of the process. */
export interface ExchangeLimits extends SendOptions {
  readonly totalTimeoutMs: number;
}

/** Address of a target's requests, with its secret. */
export const endpointOf = ({ provider: { base, addresses }, credential: { secret } }: Target): Endpoint => ({
  base,
  addresses,
  ...(secret === undefined ? {} : { secret }),
});

/** Sends a request to a target; whatever is not a success of the wanted kind is thrown as the adapter reads it. */
export async function exchange<Kind extends OutboundResponse['kind']>(
  transport: Transport,
  { provider, credential }: Target,
  request: OutboundRequest,
  kind: Kind,
  limits: ExchangeLimits,
): Promise<Extract<OutboundResponse, { kind: Kind }>> {
  const response = await transport.send(request, { ...limits, secret: credential.secret });
  if (isKind(response, kind) && response.status >= 200 && response.status <= 299) return response;
  if (response.kind === 'gathered') throw errorIn(response, provider.adapter, credential.secret);
  throw new Error('a gathered answer was asked for and a stream came');
}

function errorIn(response: GatheredResponse, adapter: Adapter, secret: string | undefined): UpstreamError {
  try {
    const error = adapter.parseError(response, secret);
    // A success in another form than was asked for, whole instead of streamed, is paid for.
    return response.status <= 299 ? error.withUsage(adapter.reportedUsage(parseJson(response.text))) : error;
  } catch (error) {
    return unreadable(error, response.status);
  }
}

/** One call of an operation whose answer comes whole. @throws TransportError, UpstreamError, ApiError 503 */
export async function exchangeWhole<Call>(
  { transport, answers }: ExchangeDeps,
  target: Target,
  translation: WholeTranslation<Call, unknown>,
  kind: AnswerKind & { readonly call: Call },
  limits: ExchangeLimits,
): Promise<ReadAnswer> {
  const request = translation.buildRequest(kind.call, endpointOf(target));
  const response = await exchange(transport, target, request, 'gathered', limits);
  return answers.read(target, kind, response, limits);
}

const isKind = <Kind extends OutboundResponse['kind']>(
  response: OutboundResponse,
  kind: Kind,
): response is Extract<OutboundResponse, { kind: Kind }> => response.kind === kind;

/** Reads what providers answer, on other threads where that would stop the serving one. */
export interface Answers {
  /** A 2xx answer that came whole. @throws UpstreamError, TransportError, ApiError 503 where too many answers wait */
  read(target: Target, kind: AnswerKind, response: GatheredResponse, options: SendOptions): Promise<ReadAnswer>;
  /** JSON of more than 64 KiB. @throws TransportError for what holds too much; ApiError 503 */
  parse(json: Buffer, options: Pick<SendOptions, 'share' | 'signal'>): Promise<ParsedJson>;
  close(): Promise<void>;
}

interface AnswersOptions {
  /** Milliseconds for one answer. */
  readonly limitMs?: number;
}

/** A whole answer up to here is read where it arrives if it holds no more values than are parsed in 10 ms. */
const READ_HERE_BYTES = 1024 * 1024;
const READ_HERE_BOUNDS = { ...ANSWER_BOUNDS, values: 20_000 };

/** Two, so that one organization's large answers do not keep another's waiting. */
const THREADS = 2;
const MAX_WAITING = 256;

/** True for what would stop the serving thread. A small answer is not even looked at. */
const isLarge = ({ body }: GatheredResponse): boolean =>
  body.length > SMALL_BYTES && (body.length > READ_HERE_BYTES || exceededBound(body, READ_HERE_BOUNDS) !== undefined);

/** It was produced, and is paid for; another provider's answer would be no smaller. */
const tooMuch = (): TransportError => new TransportError('too_large', 'the answer holds too much', { sent: true });

export function createAnswers({ limitMs = 10_000 }: AnswersOptions = {}): Answers {
  const threads = new Threads<AnswerQuestion | EventQuestion, AnswerReply>({
    start: () => startThread('readAnswers'),
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

const NO_RETRY = { 'x-should-retry': 'false' };

/** Seconds, as the header has them. */
const retryAfter = (milliseconds: number | undefined): Record<string, string> => ({
  'retry-after': String(Math.max(1, Math.ceil((milliseconds ?? 0) / 1000))),
});

/**
 * The caller's error when the last attempt has failed (src/core/README.md, "the last failure").
 * @param attempt its record, if it was made
 * @param retryAfterMs the shortest wait that a provider asked for
 */
export function failureAnswer(
  error: UpstreamError,
  attempt?: RoutingAttempt,
  retryAfterMs = error.retryAfterMs,
): ApiError {
  if (error.status === 402 && attempt?.credentialSource === 'byok') {
    return new ApiError(402, 'billing_error', error.message, { cause: error });
  }
  if (error.errorType === 'rejected') {
    const { code = 'invalid_request', param = null } = error;
    return new ApiError(400, code, error.message, { cause: error, param });
  }
  const again = { cause: error, headers: retryAfter(retryAfterMs) };
  if (error.errorType === 'rate_limited') return new ApiError(429, 'upstream_rate_limited', error.message, again);
  if (error.status === 503 || error.status === 529) {
    return new ApiError(503, 'upstream_overloaded', error.message, again);
  }
  const [status, code] = error.errorType === 'timeout' ? [504, 'upstream_timeout'] : [502, 'upstream_error'];
  return new ApiError(status, code, error.message, { cause: error, headers: NO_RETRY });
}

/** Anything an attempt throws, as a failed attempt; what is neither the network's nor the provider's doing is a bug and passes. */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error instanceof TransportError) return fromTransportError(error);
  throw error;
}

/** The failed exchange behind an error, if there is one. */
const transportErrorOf = (error: unknown): TransportError | undefined => {
  if (error instanceof TransportError) return error;
  return error instanceof Error ? transportErrorOf(error.cause) : undefined;
};

/**
 * True where we ended the attempt while the provider had the request: our caller left, a timeout of ours passed, or the answer was
 * too large. The provider has read the prompt by then, and charges for it.
 */
export const endedByUs = (error: unknown): boolean => transportErrorOf(error)?.sent === true;

/** True for a whole answer that was longer than we take: it has been produced. */
export const isTooLarge = (error: unknown): boolean => transportErrorOf(error)?.kind === 'too_large';

/** True where a bound of ours cut the answer off: that says nothing about the provider, and what came was produced. */
export const cutByUs = ({ cause }: UpstreamError): boolean =>
  cause instanceof TransportError && (cause.phase === 'total' || cause.kind === 'too_large');

/** For the log: our words and the system's (`ECONNREFUSED`, a certificate), apart from what the upstream said. */
export function loggedFailure(error: UpstreamError): AttemptFailure {
  const { errorType, summary, status, message } = error;
  let innermost: unknown = error;
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause;
  const system = innermost === error || !(innermost instanceof Error) ? [] : [innermost.message];
  const facts = [...(status === undefined ? [] : [`status ${status}`]), ...system];
  return { errorType, detail: facts.length === 0 ? summary : `${summary} (${facts.join(', ')})`, said: message };
}
