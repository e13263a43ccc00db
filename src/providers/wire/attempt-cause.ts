import { TransportError } from '../../net/transport-error.ts';
import type { UpstreamError } from './upstream-error.ts';

/**
 * Why an attempt failed, for those who run the gateway: a stable code, and the sentence for it. No address stands in them, because
 * developers read those of their own calls.
 */
const CAUSES = {
  connection_refused: 'Nothing listens at the address of the provider.',
  unknown_host: 'The host name of the provider is unknown.',
  name_look_up_failed: 'The host name of the provider could not be looked up: the name server did not answer.',
  unreachable: 'There is no route to the address of the provider.',
  address_refused: 'The address of the provider is private, and ALLOW_PRIVATE_UPSTREAMS does not name it.',
  connection_reset: 'The connection was cut before the answer was whole.',
  connection_failed: 'The connection failed.',
  tls_expired: 'The TLS certificate of the provider has expired, or is not valid yet.',
  tls_wrong_name: 'The TLS certificate of the provider is for another host name.',
  tls_self_signed: 'The TLS certificate of the provider is self-signed.',
  tls_untrusted: 'The TLS certificate of the provider comes from an authority that is not trusted here.',
  tls_failed: 'TLS failed: the server may not speak TLS at this port, or only an old version.',
  connect_timeout: 'The connection was not made in time (CONNECT_TIMEOUT_MS).',
  first_byte_timeout: 'The provider did not begin to answer in time (FIRST_BYTE_TIMEOUT_MS).',
  idle_timeout: 'The answer stalled (IDLE_TIMEOUT_MS).',
  total_timeout: 'The call as a whole took too long (TOTAL_TIMEOUT_MS).',
  caller_left: 'The caller left before the answer was whole.',
  answer_too_large: 'The answer was larger than the gateway takes (MAX_RESPONSE_BYTES).',
  not_http: 'The answer is not HTTP as the gateway takes it: another program may listen at this address.',
  wrong_path: 'There is nothing at this path of the provider: the base URL may lack /v1, or have too much.',
  redirected: 'The provider redirects to another address: the base URL may have the wrong scheme, host or path.',
  model_unknown: 'The provider does not know the model, or the credential may not use it.',
  credential_refused: 'The provider refused the credential.',
  payment_required: 'The account of the credential has no credit left.',
  rate_limited: 'The provider limits the rate of calls.',
  request_rejected: 'The provider rejected the request.',
  provider_failed: 'The provider failed.',
  provider_timeout: 'The provider itself gave up waiting.',
  unusable_answer: 'The answer cannot be used: it is malformed, empty or cut off.',
} as const;

export type AttemptCause = keyof typeof CAUSES;

/** The sentence for a code; undefined for one that is not known (any more). */
export const explainCause = (code: string): string | undefined =>
  new Map<string, string>(Object.entries(CAUSES)).get(code);

/** Codes of the system, of OpenSSL and of undici. */
const BY_SYSTEM_CODE: ReadonlyMap<string, AttemptCause> = new Map([
  ['ECONNREFUSED', 'connection_refused'],
  ['ENOTFOUND', 'unknown_host'],
  ['EAI_AGAIN', 'name_look_up_failed'],
  ['EAI_FAIL', 'name_look_up_failed'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ENETUNREACH', 'unreachable'],
  ['EADDRNOTAVAIL', 'unreachable'],
  ['ECONNRESET', 'connection_reset'],
  ['EPIPE', 'connection_reset'],
  ['UND_ERR_SOCKET', 'connection_reset'],
  ['CERT_HAS_EXPIRED', 'tls_expired'],
  ['CERT_NOT_YET_VALID', 'tls_expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_wrong_name'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_self_signed'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_untrusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'tls_untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls_untrusted'],
  ['EPROTO', 'tls_failed'],
]);

const BY_PHASE = {
  connect: 'connect_timeout',
  first_byte: 'first_byte_timeout',
  idle: 'idle_timeout',
  total: 'total_timeout',
} as const;

/** The codes of an error and of what caused it, outermost first; of several addresses that were tried, those of each. */
function* codesIn(error: unknown, depth = 6): Generator<string> {
  if (!(error instanceof Error) || depth === 0) return;
  if ('code' in error && typeof error.code === 'string') yield error.code;
  if (error instanceof AggregateError) for (const each of error.errors) yield* codesIn(each, depth - 1);
  yield* codesIn(error.cause, depth - 1);
}

const isRefusedAddress = (error: unknown): boolean =>
  error instanceof TransportError && (error.message === 'the address is not public' || isRefusedAddress(error.cause));

function ofConnection(error: TransportError): AttemptCause {
  if (isRefusedAddress(error)) return 'address_refused';
  for (const code of codesIn(error)) {
    const known = BY_SYSTEM_CODE.get(code);
    if (known !== undefined) return known;
    if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code.startsWith('CERT_')) return 'tls_failed';
  }
  return 'connection_failed';
}

function ofTransport(error: TransportError): AttemptCause {
  switch (error.kind) {
    case 'aborted':
      return 'caller_left';
    case 'too_large':
      return 'answer_too_large';
    case 'bad_response':
      return 'not_http';
    case 'timeout':
      return BY_PHASE[error.phase ?? 'total'];
    case 'connection':
      return ofConnection(error);
  }
}

/** Why an attempt failed. */
export function causeOf({ errorType, status, cause, wrongPath }: UpstreamError): AttemptCause {
  if (cause instanceof TransportError) return ofTransport(cause);
  if (wrongPath) return 'wrong_path';
  switch (errorType) {
    case 'credential':
      return status === 402 ? 'payment_required' : 'credential_refused';
    case 'rate_limited':
      return 'rate_limited';
    case 'rejected':
      return 'request_rejected';
    case 'timeout':
      return 'provider_timeout';
    case 'upstream_error':
      return status === 404 ? 'model_unknown' : 'provider_failed';
    case 'bad_response':
      return status !== undefined && status >= 300 && status < 400 ? 'redirected' : 'unusable_answer';
    case 'connection':
      return 'connection_failed';
  }
}
