import type { Usage } from '../../domain/usage.ts';
import type { TransportError, TransportErrorKind } from '../../net/transport-error.ts';

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
  /** What the upstream said, scrubbed: for the caller, not for the log, since it may echo the prompt. */
  readonly quoted?: string | undefined;
  /** What the upstream's answer amounts to as an HTTP status, if it answered: mostly its own. */
  readonly status?: number | undefined;
  /** Milliseconds after which the upstream wants to be asked again, at most 300,000. */
  readonly retryAfterMs?: number | undefined;
  /** Of a rejected request: the upstream's `code` and `param`, where they are OpenAI's words. */
  readonly code?: string | undefined;
  readonly param?: string | undefined;
  /** Overrides the rule of the type. */
  readonly retryable?: boolean;
  /** What the provider reported for an answer that cannot be used: it is still paid for. */
  readonly usage?: Usage | undefined;
  /** The upstream has nothing at the path, rather than no such model. */
  readonly wrongPath?: boolean;
  readonly cause?: unknown;
}

/**
 * A failed attempt. The message may be shown to its caller: our words, then the upstream's after scrubbing.
 * `retryable` is the failover rule of src/core/README.md, "failover".
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly errorType: AttemptErrorType;
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  /** Our words alone, for the log. */
  readonly summary: string;
  readonly quoted: string | undefined;
  readonly usage: Usage | undefined;
  readonly wrongPath: boolean;

  constructor(errorType: AttemptErrorType, summary: string, options: UpstreamErrorOptions = {}) {
    super(options.quoted === undefined ? summary : `${summary.replace(/\.$/, '')}: ${options.quoted}`, {
      cause: options.cause,
    });
    this.summary = summary;
    this.quoted = options.quoted;
    this.errorType = errorType;
    this.retryable = options.retryable ?? errorType !== 'rejected';
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.code = options.code;
    this.param = options.param;
    this.usage = options.usage;
    this.wrongPath = options.wrongPath ?? false;
  }

  /** The same failure of an answer for which the provider reported this usage. */
  withUsage(usage: Usage | undefined): UpstreamError {
    if (usage === undefined) return this;
    const { errorType, summary, quoted, retryable, status, retryAfterMs, code, param, wrongPath, cause } = this;
    return new UpstreamError(errorType, summary, {
      quoted,
      retryable,
      status,
      retryAfterMs,
      code,
      param,
      wrongPath,
      cause,
      usage,
    });
  }
}

/** The body of a success that is none: malformed, empty, cut off, or an error in disguise. */
export const badResponse = (message: string, status = 200): UpstreamError =>
  new UpstreamError('bad_response', message, { status });

/** An answer at which reading it failed. @param cause what was thrown */
export const unreadable = (cause: unknown, status = 200): UpstreamError =>
  new UpstreamError('bad_response', 'The provider sent an answer that cannot be read.', { status, cause });

/** Reads an answer. Where that fails, the error carries what the provider reported for it. @throws UpstreamError */
export function paidFor<T>(usage: () => Usage | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const failure = error instanceof UpstreamError ? error : unreadable(error);
    throw failure.withUsage(usage());
  }
}

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
 * @param more what its headers ask for, and its own words for a fault of the request
 */
export function fromStatus(
  status: number,
  text: string,
  { retryAfterMs, ...words }: Pick<UpstreamErrorOptions, 'retryAfterMs' | 'code' | 'param'> = {},
): UpstreamError {
  const facts = { status, retryAfterMs };
  const quoting = { ...facts, quoted: text === '' ? `status ${status}` : text };
  switch (status) {
    case 401:
    case 403:
      return new UpstreamError('credential', "The provider refused the gateway's credential.", facts);
    case 402:
      return new UpstreamError('credential', 'The provider asks for payment on the credential in use.', facts);
    case 404:
      // The caller's name was resolved, so this is a fault of our mapping, not of the request: another provider may know it.
      return new UpstreamError('upstream_error', 'The provider does not know the model.', {
        ...facts,
        wrongPath: isAboutPath(text),
      });
    case 408:
      return new UpstreamError('timeout', 'The provider gave up waiting.', quoting);
    case 409:
      return new UpstreamError('upstream_error', 'The provider reported a conflict.', quoting);
    case 429:
    case 498: // Groq's own: no capacity left in the service tier
      return new UpstreamError('rate_limited', 'The provider limits the rate of calls.', quoting);
    default:
      if (status >= 500) return new UpstreamError('upstream_error', 'The provider failed.', quoting);
      if (status < 400) return badResponse(`The provider answered with the unexpected status ${status}.`, status);
      return new UpstreamError('rejected', 'The provider rejected the request.', {
        ...quoting,
        ...wordsOf(text, words),
        wrongPath: status === 405,
      });
  }
}

/** How a server says 404 of a path: with nothing that we read, which a page is, or in such words. */
const isAboutPath = (text: string): boolean =>
  text === '' ||
  /^(?:404:? )?(?:page |path |route |url )?not found[.!]?$|invalid url|cannot (?:post|get) |no (?:such )?(?:route|path|endpoint)|unknown (?:request )?(?:url|path|endpoint)/i.test(
    text,
  );

/** OpenAI's codes for faults of a request: clients act on them. */
const REQUEST_CODES: ReadonlySet<string> = new Set([
  'array_above_max_length',
  'array_below_min_length',
  'content_policy_violation',
  'context_length_exceeded',
  'decimal_above_max_value',
  'decimal_below_min_value',
  'empty_array',
  'empty_string',
  'image_content_policy_violation',
  'image_file_too_large',
  'image_parse_error',
  'image_too_large',
  'integer_above_max_value',
  'integer_below_min_value',
  'invalid_base64_image',
  'invalid_function_parameters',
  'invalid_image',
  'invalid_image_format',
  'invalid_image_url',
  'invalid_prompt',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'moderation_blocked',
  'string_above_max_length',
  'string_below_min_length',
  'unknown_parameter',
  'unsupported_image_media_type',
  'unsupported_parameter',
  'unsupported_value',
]);

/** How providers without OpenAI's codes say that a prompt is too long, in lower case. */
const TOO_LONG = [
  'context length',
  'context window',
  'context size',
  'prompt is too long',
  'exceeds the maximum number of tokens',
  'too many tokens',
];

/** The code and param of a rejected request that clients of OpenAI know; a prompt that is too long is recognized by the text too. */
function wordsOf(text: string, { code, param }: Pick<UpstreamErrorOptions, 'code' | 'param'>): UpstreamErrorOptions {
  const lower = text.toLowerCase();
  if (code === undefined || !REQUEST_CODES.has(code)) {
    return TOO_LONG.some((words) => lower.includes(words))
      ? { code: 'context_length_exceeded', param: 'messages' }
      : {};
  }
  return { code, ...(param !== undefined && /^[\w.[\]-]{1,200}$/.test(param) ? { param } : {}) };
}
