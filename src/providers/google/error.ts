import type { GatheredResponse, ResponseHeaders } from '../../net/exchange.ts';
import { type Fields, isRecord, parseJson, record } from '../wire/fields.ts';
import { badResponse, fromStatus, retryAfterMs, scrub, type UpstreamError } from '../wire/upstream-error.ts';

const detailsOf = (error: Fields): Fields[] => (Array.isArray(error.details) ? error.details.filter(isRecord) : []);

/**
 * HTTP status that an error amounts to. Google answers 400 for an invalid key (`API_KEY_INVALID` and its like), and for an
 * account that it does not serve (`FAILED_PRECONDITION`: no billing, or not in this country): both are about the credential,
 * not the request. Its 499 is a call that it gave up itself.
 */
function statusOf(status: number, error: Fields): number {
  const aboutKey = detailsOf(error).some(({ reason }) => typeof reason === 'string' && reason.startsWith('API_KEY_'));
  if (aboutKey) return 401;
  if (error.status === 'FAILED_PRECONDITION') return 403;
  return status === 499 ? 503 : status;
}

/** `RetryInfo` tells in the body what others tell in a header, as `34.07s`. */
function retryHeaders(headers: ResponseHeaders, error: Fields): ResponseHeaders {
  if (headers['retry-after'] !== undefined) return headers;
  for (const { retryDelay } of detailsOf(error)) {
    if (typeof retryDelay === 'string') return { ...headers, 'retry-after': retryDelay.replace(/s$/, '') };
  }
  return headers;
}

/** Any answer that is no success: `{error: {code, message, status, details}}`, also as the one element of a list. */
export function parseError(response: GatheredResponse, secret: string | undefined): UpstreamError {
  if (response.status >= 200 && response.status < 300) {
    return badResponse('The provider did not answer with a stream.', response.status);
  }
  const body = parseJson(response.text);
  const { error: reported } = record(Array.isArray(body) ? body[0] : body);
  const error = record(reported);
  const text = typeof error.message === 'string' ? error.message : '';
  return fromStatus(statusOf(response.status, error), scrub(text, secret), {
    retryAfterMs: retryAfterMs(retryHeaders(response.headers, error)),
  });
}

/**
 * Refuses an error inside a success, also in the middle of a stream. Its code tells the type; its text is kept back, for there
 * the secret of the request, which it may hold, is not known.
 * @throws UpstreamError as the same error with a status of its own would be
 */
export function refuseError(answer: Fields): void {
  if (answer.error === undefined || answer.error === null) return;
  const error = record(answer.error);
  const code =
    typeof error.code === 'number' && Number.isInteger(error.code) && error.code >= 400 && error.code <= 599
      ? error.code
      : undefined;
  if (code === undefined) throw badResponse('The provider reported an error inside a successful answer.');
  throw fromStatus(statusOf(code, error), '', { retryAfterMs: retryAfterMs(retryHeaders({}, error)) });
}
