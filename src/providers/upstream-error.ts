import type { TransportError, TransportErrorKind } from '../net/transport-error.ts';

/** Why an attempt failed: `error_type` of an entry in `metadata.routing`, but for `none`. */
export type AttemptErrorType =
  | 'connection'
  | 'timeout'
  | 'rate_limited'
  | 'credential'
  | 'upstream_error'
  | 'bad_response'
  | 'rejected';

export interface UpstreamErrorOptions {
  /** What the upstream's answer amounts to as an HTTP status, if it answered: mostly its own. */
  readonly status?: number | undefined;
  /** Milliseconds after which the upstream wants to be asked again, at most 60,000. */
  readonly retryAfterMs?: number | undefined;
  /** Overrides the rule of the type. */
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/**
 * A failed attempt. The message may be shown to any caller: it is ours, or the upstream's after scrubbing.
 * `retryable` is the failover rule of decisions.md, section 5.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly errorType: AttemptErrorType;
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(errorType: AttemptErrorType, message: string, options: UpstreamErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.errorType = errorType;
    this.retryable = options.retryable ?? errorType !== 'rejected';
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The body of a success that is none: malformed, empty, cut off, or an error in disguise. */
export const badResponse = (message: string, status = 200): UpstreamError =>
  new UpstreamError('bad_response', message, { status });

/** A success that nobody could read, for what reading it has thrown: it was made to be read by nobody. */
export const unreadable = (cause: unknown): UpstreamError =>
  new UpstreamError('bad_response', 'The provider sent an answer that cannot be read.', { status: 200, cause });

/** A request that this provider cannot take though another one may: goes on to the next candidate, and is a 400 in the end. */
export const notTakenByProvider = (message: string): UpstreamError =>
  new UpstreamError('rejected', message, { retryable: true });

const BY_KIND: Readonly<Record<TransportErrorKind, { type: AttemptErrorType; text: string }>> = {
  connection: { type: 'connection', text: 'The connection to the provider failed' },
  timeout: { type: 'timeout', text: 'The provider took too long' },
  too_large: { type: 'bad_response', text: 'The answer of the provider was refused' },
  bad_response: { type: 'bad_response', text: 'The answer of the provider was refused' },
  aborted: { type: 'connection', text: 'The call was cancelled' },
};

/** A failure of the transport as a failed attempt. Not retryable: our caller left, or the total time is spent. */
export function fromTransportError(error: TransportError): UpstreamError {
  const { type, text } = BY_KIND[error.kind];
  const retryable = error.kind !== 'aborted' && error.phase !== 'total';
  return new UpstreamError(type, `${text}: ${error.message}.`, { retryable, cause: error });
}

/**
 * A status that is no success as a failed attempt. The text of 401, 402 and 403 is never used: it can hold credentials.
 * @param text what the upstream said, scrubbed; empty when it said nothing
 * @param retryAfterMs what its headers ask for
 */
export function fromStatus(status: number, text: string, retryAfterMs?: number): UpstreamError {
  const said = text === '' ? `status ${status}` : text;
  const facts = { status, retryAfterMs };
  switch (status) {
    case 401:
    case 403:
      return new UpstreamError('credential', "The provider refused the gateway's credential.", facts);
    case 402:
      return new UpstreamError('credential', 'The provider asks for payment on the credential in use.', facts);
    case 404:
      // The caller's name was resolved, so this is a fault of our mapping, not of the request: another provider may know it.
      return new UpstreamError('upstream_error', 'The provider does not know the model.', facts);
    case 408:
      return new UpstreamError('timeout', `The provider gave up waiting: ${said}`, facts);
    case 409:
      return new UpstreamError('upstream_error', `The provider reported a conflict: ${said}`, facts);
    case 429:
    case 498: // Groq's own: no capacity left in the service tier
      return new UpstreamError('rate_limited', `The provider limits the rate of calls: ${said}`, facts);
    default:
      if (status >= 500) return new UpstreamError('upstream_error', `The provider failed: ${said}`, facts);
      if (status < 400) return badResponse(`The provider answered with the unexpected status ${status}.`, status);
      return new UpstreamError('rejected', `The provider rejected the request: ${said}`, facts);
  }
}
