import { type Clock, systemClock } from '../../domain/time.ts';
import type { Usage } from '../../domain/usage.ts';
import { plainText } from '../../lib/text.ts';
import type { ResponseHeaders } from '../../net/exchange.ts';
import { TransportError, type TransportErrorKind } from '../../net/transport-error.ts';

/** Why an attempt failed: `error_type` of an entry in `metadata.routing`, but for `none`. */
type AttemptErrorType =
  | 'connection'
  | 'timeout'
  | 'rate_limited'
  | 'credential'
  | 'upstream_error'
  | 'bad_response'
  | 'rejected';

interface UpstreamErrorOptions {
  /** Text of the upstream, scrubbed: for the caller, not for the log, since it may echo the prompt. */
  readonly quoted?: string | undefined;
  /** HTTP status that the upstream's answer amounts to, if it answered: mostly its own. */
  readonly status?: number | undefined;
  /** Milliseconds after which the upstream wants to be asked again, at most 300,000. */
  readonly retryAfterMs?: number | undefined;
  /** For a rejected request: the upstream's `code` and `param`, where they are OpenAI's words. */
  readonly code?: string | undefined;
  readonly param?: string | undefined;
  /** Overrides the rule of the type. */
  readonly retryable?: boolean;
  /** Usage that the provider reported for an answer that cannot be used: it is still paid for. */
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

  /** Returns this failure with the usage that the provider reported for the answer. */
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

/** Whether a 404 is about the path: it has no text that we read, as with a page, or uses such words. */
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

/** Words of providers without OpenAI's codes for a prompt that is too long, in lower case. */
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

const MAX_INPUT = 4096;
const MAX_OUTPUT = 1000;
const REDACTED = '[redacted]';

/** Patterns of credentials: known prefixes, bearer tokens, user information in URLs, key parameters, long hex. */
const CREDENTIALS = [
  /\b(?:bearer|basic)\s+[^\s"',;]{6,}/gi,
  /\b(?:sk|pk|rk|pcl|pclm|pcli|pcls|gsk|xai|hf|nvapi|pplx|ghp|gho|glpat|xox[abp]|r8|fw|csk|tgp|key)[-_][A-Za-z0-9*._-]{6,}/gi,
  /\bAIza[A-Za-z0-9_*-]{6,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9*]{6,}/g,
  /\beyJ[A-Za-z0-9_-]{6,}[A-Za-z0-9_.-]*/g,
  /\/\/[^\s/@]{1,200}@/g,
  /\b(?:api[-_ ]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?[^\s"',;&]{4,}/gi,
  /\b[0-9a-f]{32,}\b/gi,
];

/** A long word that mixes upper case, lower case and digits, as only random text does. */
const LONG_WORD = /[A-Za-z0-9+/_=-]{32,}/g;

const looksRandom = (word: string): boolean => /[a-z]/.test(word) && /[A-Z]/.test(word) && /[0-9]/.test(word);

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/**
 * An upstream's text made fit for a caller: one line, bounded, and without anything that looks like a credential
 * (src/core/README.md, "error texts"). `secret` is the one that the request carried.
 */
export function scrub(text: string, secret?: string): string {
  // The secret goes before the text is cut: the cut might leave a part of it that is no longer recognized.
  const withoutSecret = secret === undefined || secret === '' ? text : text.replaceAll(secret, REDACTED);
  let clean = plainText(withoutSecret.slice(0, MAX_INPUT).replace(CONTROL, ' '));
  for (const pattern of CREDENTIALS) clean = clean.replace(pattern, REDACTED);
  clean = clean.replace(LONG_WORD, (word) => (looksRandom(word) ? REDACTED : word)).trim();
  return (clean.length > MAX_OUTPUT ? `${clean.slice(0, MAX_OUTPUT)}…` : clean).toWellFormed();
}

/** An upstream may not keep us away for longer (src/core/README.md, "the last failure"). */
const MAX_MS = 300_000;

/**
 * Milliseconds after which the upstream wants to be asked again, 0 to 300,000: `retry-after-ms`, else `retry-after` in seconds
 * or as an HTTP date. Undefined when it said nothing, or nothing readable.
 */
export function retryAfterMs(headers: ResponseHeaders, clock: Clock = systemClock): number | undefined {
  const milliseconds = headers['retry-after-ms'];
  const after = headers['retry-after'];
  for (const wait of [number(milliseconds), number(after, 1000), untilDate(after, clock)]) {
    if (wait !== undefined) return Math.min(Math.max(0, Math.ceil(wait)), MAX_MS);
  }
  return undefined;
}

function number(value: ResponseHeaders[string], unit = 1): number | undefined {
  return typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * unit : undefined;
}

function untilDate(value: ResponseHeaders[string], clock: Clock): number | undefined {
  // A bare number would be read as a year.
  if (typeof value !== 'string' || !/[a-z]/i.test(value)) return undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : date - clock.now();
}
