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
export type TimeoutPhase = 'connect' | 'first_byte' | 'idle' | 'total';

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
