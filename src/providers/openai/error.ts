import type { GatheredResponse } from '../../net/exchange.ts';
import { type Fields, isRecord, parseJson } from '../wire/answer-json.ts';
import { badResponse, fromStatus, retryAfterMs, scrub, UpstreamError } from '../wire/upstream-error.ts';

/**
 * Words of `code` and `type` about the credential, which count more than the status they come under: 429 of OpenAI and Moonshot,
 * 400.
 */
const CREDENTIAL_WORDS: ReadonlyMap<string, number> = new Map([
  ['insufficient_quota', 402],
  ['billing_not_active', 402],
  ['exceeded_current_quota_error', 402],
  ['invalid_api_key', 401],
]);

/** Words of `code` and `type` that stand for a status where none is given. */
const WORDS: ReadonlyMap<string, number> = new Map([
  ...CREDENTIAL_WORDS,
  ['context_length_exceeded', 400],
  ['invalid_request_error', 400],
  ['rate_limit_exceeded', 429],
  ['rate_limit_error', 429],
  ['rate_limit_reached_error', 429],
  ['server_error', 500],
  ['overloaded_error', 503],
  ['engine_overloaded_error', 503],
]);

/** xAI answers a wrong key with 400 and nothing but a sentence. */
const WRONG_KEY = /\b(?:incorrect|invalid) api[ _-]?key\b/i;

/** Any answer that is no success, and a gathered one to a request with `stream`. @param secret what the request carried */
export function readError({ status, headers, text }: GatheredResponse, secret: string | undefined): UpstreamError {
  const body = parseJson(text);
  if (status >= 200 && status < 300) {
    if (isRecord(body) && isError(body)) return disguisedError(body, secret);
    return badResponse('The provider did not answer with a stream.', status);
  }
  const said = errorText(body);
  const meant = wordStatus(body, CREDENTIAL_WORDS) ?? (status === 400 && WRONG_KEY.test(said) ? 401 : status);
  return fromStatus(meant, scrub(said, secret), { retryAfterMs: retryAfterMs(headers), ...wordsOf(body) });
}

/** True for a body, or a chunk of a stream, that reports a failure though its status was a success. */
export const isError = (body: Fields): boolean =>
  (body.error !== undefined && body.error !== null) || body.object === 'error' || groqError(body) !== undefined;

/** Groq ends a stream that fails with `x_groq: {error}`. */
const groqError = ({ x_groq: own }: Fields): unknown => (isRecord(own) ? (own.error ?? undefined) : undefined);

const DISGUISED = 'The provider reported an error inside a successful answer.';

/**
 * An error that came under a success, typed by what it carries. Only the caller's own mistake is quoted: of any other text nothing
 * says whether it is about credentials. @param secret what the request carried
 */
export function disguisedError(body: Fields, secret?: string): UpstreamError {
  const status = carriedStatus(body) ?? wordStatus(body, WORDS);
  if (status === undefined) return badResponse(DISGUISED);
  const { errorType, retryable, message } = fromStatus(status, '');
  if (errorType === 'rejected') return fromStatus(status, scrub(errorText(body), secret), wordsOf(body));
  return new UpstreamError(errorType, errorType === 'credential' ? message : DISGUISED, { status, retryable });
}

/** The parts of a body that can say what kind of error it is, the innermost first. */
const levels = (body: unknown): Fields[] => (isRecord(body) ? [body.error, body] : []).filter(isRecord);

/** `code` and `param` of an envelope, where they are text. */
function wordsOf(body: unknown): { readonly code?: string; readonly param?: string } {
  const [error] = levels(body);
  const { code, param } = error ?? {};
  return { ...(typeof code === 'string' ? { code } : {}), ...(typeof param === 'string' ? { param } : {}) };
}

/** Of anything else an upstream could choose what making a text of it does. */
const isWord = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number';

/** A status that the error names itself, as OpenRouter's numeric `code`. */
function carriedStatus(body: Fields): number | undefined {
  for (const { status, status_code: statusCode, code } of levels(body)) {
    for (const value of [status, statusCode, code]) {
      if (isWord(value) && /^[45]\d\d$/.test(String(value))) return Number(value);
    }
  }
  return undefined;
}

/** Where a web framework found a fault. */
function placeIn(loc: unknown): string[] {
  const words = Array.isArray(loc) ? loc.slice(0, 8).filter(isWord) : [];
  return words.length === 0 ? [] : [words.join('.')];
}

function wordStatus(body: unknown, words: ReadonlyMap<string, number>): number | undefined {
  for (const { code, type } of levels(body)) {
    for (const word of [code, type]) {
      const status = typeof word === 'string' ? words.get(word) : undefined;
      if (status !== undefined) return status;
    }
  }
  return undefined;
}

/** The text of an envelope: OpenAI's, a bare string, those of common web frameworks, and what a reseller passes on. */
function errorText(body: unknown): string {
  const text = said(body);
  const [error] = levels(body);
  const raw = isRecord(error?.metadata) ? error.metadata.raw : undefined;
  const inner = typeof raw === 'string' ? said(parseJson(raw)) || raw : said(raw);
  return [text, inner].filter((part) => part !== '').join(': ');
}

/** The first text in `error`, `message` or `detail`; of a list of validation errors, where and what. */
function said(value: unknown, depth = 4): string {
  if (typeof value === 'string') return value;
  if (depth === 0) return '';
  if (Array.isArray(value)) {
    const texts = value.slice(0, 5).map((item: unknown) => said(item, depth - 1));
    return texts.filter((text) => text !== '').join('; ');
  }
  if (!isRecord(value)) return '';
  if (typeof value.msg === 'string') return [...placeIn(value.loc), value.msg].join(': ');
  for (const part of [value.error, value.message, value.detail]) {
    const text = said(part, depth - 1);
    if (text !== '') return text;
  }
  return '';
}

/** The object of a success. @throws UpstreamError `bad_response`, or the error that is disguised as a success */
export function openAiAnswer(text: string, secret: string | undefined): Readonly<Record<string, unknown>> {
  const answer = parseJson(text);
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  if (isError(answer)) throw disguisedError(answer, secret);
  return answer;
}
