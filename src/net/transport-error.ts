/**
 * Why an outbound exchange failed.
 *
 * - `connection`: no connection, a refused address, or a connection lost before the answer was whole.
 * - `timeout`: connect, first byte, idle or total time ran out.
 * - `too_large`: the answer is larger than the bound.
 * - `bad_response`: not HTTP, or a content encoding that was not asked for.
 * - `aborted`: our own caller went away.
 */
export type TransportErrorKind = 'connection' | 'timeout' | 'too_large' | 'bad_response' | 'aborted';

/** A failed exchange with an upstream. The message is ours and holds no text of the peer; what really happened is the cause. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly kind: TransportErrorKind;

  constructor(kind: TransportErrorKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

/** Undici's and the system's error codes as one of our kinds; whatever is not known is a lost connection. */
export function toTransportError(error: Error): TransportError {
  if (error instanceof TransportError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  switch (code) {
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return new TransportError('timeout', 'connecting took too long', error);
    case 'UND_ERR_HEADERS_TIMEOUT':
      return new TransportError('timeout', 'the first byte took too long', error);
    case 'UND_ERR_BODY_TIMEOUT':
      return new TransportError('timeout', 'the answer stalled', error);
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return new TransportError('bad_response', 'the answer is not well-formed HTTP', error);
    default:
      return code.startsWith('HPE_')
        ? new TransportError('bad_response', 'the answer is not well-formed HTTP', error)
        : new TransportError('connection', 'the connection failed', error);
  }
}
