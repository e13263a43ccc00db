import { ApiError } from '../../domain/errors.ts';
import type { RoutingAttempt } from '../../generated/types.ts';
import { TransportError } from '../../net/transport-error.ts';
import { fromTransportError, UpstreamError } from '../../providers/wire/upstream-error.ts';
import type { AttemptFailure } from '../../telemetry.ts';

const NO_RETRY = { 'x-should-retry': 'false' };

/** Seconds, as the header has them. */
const retryAfter = (milliseconds: number | undefined): Record<string, string> => ({
  'retry-after': String(Math.max(1, Math.ceil((milliseconds ?? 0) / 1000))),
});

/**
 * What a caller gets when the last attempt has failed (src/core/README.md, "the last failure").
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
