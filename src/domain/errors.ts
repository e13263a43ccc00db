/** The `type` of an error envelope; one for each class of status in src/http/README.md, "Errors and hostile input". */
export type ErrorType = 'invalid_request_error' | 'rate_limit_error' | 'api_error';

export interface ApiErrorOptions {
  /** JSON pointer of the first fault in the body, or null. */
  param?: string | null;
  /** Extra response headers (`retry-after`, `allow`, ...). */
  headers?: Record<string, string>;
  /** The fault behind the message, where it is one of a field. */
  fault?: FieldFault | undefined;
  /** Real cause: for the log, never for the caller. */
  cause?: unknown;
}

/** How a door names the parts of a request in its messages. */
export interface Wording {
  /** @param pointer JSON pointer; empty: the whole request */
  field(pointer: string): string;
  /** Null as a value. */
  readonly nothing: string;
}

/** A fault of one field of a request, for each door to phrase. */
export interface FieldFault {
  /** JSON pointer; empty: the whole request. */
  readonly pointer: string;
  /** The field's value, quoted and shortened; empty: it is not repeated. */
  readonly quoted: string;
  /** The rest of the sentence, after the field and its value. */
  readonly predicate: string | ((wording: Wording) => string);
  /** `empty`: the field, or the request, has nothing in it; `unknown`: there is no such field. */
  readonly kind?: 'empty' | 'unknown' | undefined;
}

export const HTTP_WORDING: Wording = {
  field: (pointer) => (pointer === '' ? 'The request body' : pointer),
  nothing: 'null',
};

/** The sentence about a fault, in the words of a door. */
export function phrase({ pointer, quoted, predicate }: FieldFault, wording: Partial<Wording> = {}): string {
  const words = { ...HTTP_WORDING, ...wording };
  const said = typeof predicate === 'string' ? predicate : predicate(words);
  const name = `${words.field(pointer)}${quoted === '' ? '' : ` (${quoted})`}`;
  return `${name}${said.startsWith(':') ? '' : ' '}${said}${/[.?]$/.test(said) ? '' : '.'}`;
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
  readonly fault: FieldFault | undefined;

  constructor(status: number, code: string, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.status = status;
    this.type = status === 429 ? 'rate_limit_error' : status >= 500 ? 'api_error' : 'invalid_request_error';
    this.code = code;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
    this.fault = options.fault;
  }

  /** The error envelope: all four keys, always. */
  envelope(): { error: { message: string; type: ErrorType; param: string | null; code: string } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.code } };
  }
}

export const invalidRequest = (message: string, param: string | null = null): ApiError =>
  new ApiError(400, 'invalid_request', message, { param });

/** A 400 about one field. @param pointer its JSON pointer @param predicate as in `FieldFault` */
export function invalidField(
  pointer: string,
  predicate: FieldFault['predicate'],
  { quoted = '', kind }: Partial<Pick<FieldFault, 'quoted' | 'kind'>> = {},
): ApiError {
  const fault: FieldFault = { pointer, quoted, predicate, kind };
  return new ApiError(400, 'invalid_request', phrase(fault), { param: pointer, fault });
}

/** Predicate of a field that may be null. */
export const nullOr =
  (what: string): FieldFault['predicate'] =>
  ({ nothing }) =>
    `must be ${nothing} or ${what}`;

/** An error about a part of a request, as an error about the whole. @param place pointer of the part */
export function relocated(error: ApiError, place: string): ApiError {
  const { status, code, message, param, fault } = error;
  if (fault === undefined)
    return new ApiError(status, code, `${place}: ${message}`, { param: `${place}${param ?? ''}` });
  const moved = { ...fault, pointer: `${place}${fault.pointer}` };
  return new ApiError(status, code, phrase(moved), { param: moved.pointer, fault: moved });
}

/** The 400 for a field that is unknown, or that no provider of the model accepts. @param param its JSON pointer */
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
