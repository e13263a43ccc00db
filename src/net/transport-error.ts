import { type ApiError, overloaded } from '../domain/errors.ts';

/**
 * Why an outbound exchange failed.
 *
 * - `connection`: no connection, a refused address, or a connection lost before the answer was whole.
 * - `timeout`: connect, first byte, idle or total time ran out.
 * - `too_large`: the answer is larger than a bound.
 * - `bad_response`: not HTTP, a content encoding that was not asked for, or JSON that no thread could parse.
 * - `aborted`: our own caller went away.
 */
export type TransportErrorKind = 'connection' | 'timeout' | 'too_large' | 'bad_response' | 'aborted';

/** Which time ran out. */
type TimeoutPhase = 'connect' | 'first_byte' | 'idle' | 'total';

const TIMEOUT_MESSAGES: Readonly<Record<TimeoutPhase, string>> = {
  connect: 'connecting took too long',
  first_byte: 'the first byte took too long',
  idle: 'the answer stalled',
  total: 'the whole answer took too long',
};

/** A failed exchange with an upstream. The message is ours and holds no text of the peer; what really happened is the cause. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly kind: TransportErrorKind;
  /** Present exactly when the kind is `timeout`. */
  readonly phase: TimeoutPhase | undefined;
  /** We gave the exchange up when the peer had the request: our caller left, a time ran out, the answer was too large. */
  readonly sent: boolean;

  constructor(
    kind: TransportErrorKind,
    message: string,
    options: { cause?: unknown; phase?: TimeoutPhase; sent?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.phase = options.phase;
    this.sent = options.sent ?? false;
  }
}

/** @param sent whether the peer had the request */
export const timeoutError = (phase: TimeoutPhase, sent: boolean, cause?: unknown): TransportError =>
  new TransportError('timeout', TIMEOUT_MESSAGES[phase], { cause, phase, sent });

/**
 * Undici's and the system's error codes as one of our kinds; whatever is not known is a lost connection.
 * @param failed whether the peer had already said that it failed: then it has not served the request that we give up
 */
export function toTransportError(error: Error, failed = false): TransportError {
  if (error instanceof TransportError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  switch (code) {
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return timeoutError('connect', false, error);
    case 'UND_ERR_HEADERS_TIMEOUT':
      return timeoutError('first_byte', !failed, error);
    case 'UND_ERR_BODY_TIMEOUT':
      return timeoutError('idle', !failed, error);
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return new TransportError('bad_response', 'the answer is not well-formed HTTP', { cause: error });
    default:
      return error.name === 'HTTPParserError'
        ? new TransportError('bad_response', 'the answer is not well-formed HTTP', { cause: error })
        : new TransportError('connection', 'it could not be made or was cut', { cause: error });
  }
}

/**
 * Takes room for an answer that needs so many bytes of memory in all, until its call has ended.
 * @throws ApiError 503 (`noRoom`) when the process, or the caller's share of it, has no memory left
 */
export type Room = (bytes: number) => void;

/** The answer of a call that we end because there is no room for what the provider sends: it has served the request. */
export const noRoom = (cause?: unknown): ApiError =>
  overloaded(new TransportError('too_large', 'there was no room for the answer', { sent: true, cause }));

/**
 * About as many bytes as one read of a socket gives. Any JSON up to here is parsed in 5 ms; of an event that is larger, and of
 * an answer that is larger and holds many values, or is much larger, the parsing is left to another thread.
 */
export const SMALL_BYTES = 64 * 1024;

/** Bytes of a stream in all, for each byte that a whole answer or one event of the stream may have. */
export const STREAM_FACTOR = 4;

/** Pieces of a body: a stream has one for each token. */
export const MAX_PIECES = 500_000;

/** Lines of a stream: a token is an event, and an event two or three lines. */
export const MAX_LINES = 1_000_000;

/** Lines of one event's data. */
export const MAX_DATA_LINES = 10_000;

/**
 * Bytes of an answer that may come before its body, interim answers included, or between two pieces of it. What one read of the
 * socket brings is looked at as a whole.
 */
export const MAX_UNHEARD_BYTES = 16 * 1024;

/**
 * The parser's own bound of a header, which is never reached: it goes on parsing beyond, and makes an error of each further
 * field, 140 ms of them in one read.
 */
export const PARSER_HEADER_BYTES = 256 * 1024;
