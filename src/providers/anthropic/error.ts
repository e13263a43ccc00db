import type { GatheredResponse } from '../../net/exchange.ts';
import { isRecord, parseJson } from '../wire/fields.ts';
import { badResponse, fromStatus, retryAfterMs, scrub, type UpstreamError } from '../wire/upstream-error.ts';

/** The status that the API gives each type of error: in a stream the type comes alone. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

const PAYMENT_REQUIRED = 402;

/** Said with status 400, and yet about the credential's account. */
const UNPAID = /credit balance is too low|reached your specified (?:api |workspace )*usage limit/i;

/** An answer that is no success, or no stream where one was asked for. */
export function parseError(response: GatheredResponse, secret: string | undefined): UpstreamError {
  const body = parseJson(response.text);
  const { status } = response;
  if (status >= 200 && status < 300) {
    return reportedError(body, secret) ?? badResponse('The provider did not answer with a stream.', status);
  }
  const { type, message } = envelope(body);
  const unpaid = STATUS.get(type) === PAYMENT_REQUIRED || (status === 400 && UNPAID.test(message));
  return fromStatus(unpaid ? PAYMENT_REQUIRED : status, scrub(message, secret), {
    retryAfterMs: retryAfterMs(response.headers),
  });
}

/** An error inside a success: an event of a stream, or a whole answer that is one. Undefined for anything else. */
export function reportedError(body: unknown, secret: string | undefined): UpstreamError | undefined {
  if (!isRecord(body) || (body.type !== 'error' && !isRecord(body.error))) return undefined;
  const { type, message } = envelope(body);
  if (UNPAID.test(message)) return fromStatus(PAYMENT_REQUIRED, '');
  const status = STATUS.get(type);
  // The text of an error whose type is not the API's may be about credentials: it is kept back.
  return status === undefined ? fromStatus(500, '') : fromStatus(status, scrub(message, secret));
}

function envelope(body: unknown): { readonly type: unknown; readonly message: string } {
  const error = isRecord(body) && isRecord(body.error) ? body.error : {};
  return { type: error.type, message: typeof error.message === 'string' ? error.message : '' };
}
