/** The `type` of an error envelope; one for each class of status in src/http/README.md, "Errors and hostile input". */
export type ErrorType = 'invalid_request_error' | 'rate_limit_error' | 'api_error';

export interface ApiErrorOptions {
  /** JSON pointer of the first fault in the body, or null. */
  param?: string | null;
  /** Extra response headers (`retry-after`, `allow`, ...). */
  headers?: Record<string, string>;
  /** Real cause: for the log, never for the caller. */
  cause?: unknown;
}

/**
 * An answer that is an error: HTTP status, the envelope's `type` and `code`, and a sentence that any caller may read.
 * Whatever else is thrown becomes a 500 `internal_error` at the envelope, and only there.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly type: ErrorType;
  readonly code: string;
  readonly param: string | null;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.status = status;
    this.type = status === 429 ? 'rate_limit_error' : status >= 500 ? 'api_error' : 'invalid_request_error';
    this.code = code;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
  }

  /** The error envelope: all four keys, always. */
  envelope(): { error: { message: string; type: ErrorType; param: string | null; code: string } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.code } };
  }
}

export const invalidRequest = (message: string, param: string | null = null): ApiError =>
  new ApiError(400, 'invalid_request', message, { param });

/** A field that is not known, or that nobody who could answer takes. @param param its JSON pointer */
export const unsupportedParameter = (message: string, param: string): ApiError =>
  new ApiError(400, 'unsupported_parameter', message, { param });

export const unauthorized = (
  code: 'invalid_api_key' | 'api_key_disabled' | 'api_key_expired' | 'usage_limit_reached' | 'invalid_token',
  message: string,
): ApiError => new ApiError(401, code, message);

export const permissionDenied = (message: string): ApiError => new ApiError(403, 'permission_denied', message);

export const notFound = (message: string): ApiError => new ApiError(404, 'not_found', message);

export const modelNotFound = (message: string): ApiError => new ApiError(404, 'model_not_found', message);

/** Nobody reads it. */
export const clientLeft = (): ApiError => new ApiError(499, 'client_closed_request', 'The client has left.');

export const overloaded = (cause?: unknown): ApiError =>
  new ApiError(503, 'overloaded', 'The gateway is overloaded. Try again shortly.', {
    headers: { 'retry-after': '1' },
    cause,
  });

export const policyUnavailable = (cause: unknown): ApiError =>
  new ApiError(503, 'policy_unavailable', 'The policy could not be evaluated, so the call was refused.', { cause });
