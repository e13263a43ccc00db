import { hash } from 'node:crypto';
import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import type { ChatChoice, ChunkChoice, ChunkDelta, CompletionMessage, FinishReason } from '../../generated/types.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { count, type Fields, isRecord, modelId, parseJson, record } from '../wire/fields.ts';
import { badResponse, fromStatus, retryAfterMs, scrub, UpstreamError } from '../wire/upstream-error.ts';

/** More choices than any request may ask for. */
export const MAX_CHOICES = 128;

/** Fields that the gateway writes itself, or reads; and names that must not become a prototype. */
const READ: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'metadata',
  'model',
  'choices',
  'usage',
  'error',
  '__proto__',
]);

/** Every other top-level field of an answer or a chunk. */
export function otherFields(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(answer)) if (!READ.has(name)) fields[name] = answer[name];
  return fields;
}

/** A whole answer. @throws UpstreamError */
export function parseCompletion({ text }: GatheredResponse, secret?: string): UpstreamCompletion {
  const answer = openAiAnswer(text, secret);
  const { model, choices } = answer;
  if (!Array.isArray(choices) || choices.length === 0) throw badResponse('The provider sent an empty answer.');
  boundChoices(choices);
  return {
    model: modelId(model),
    choices: choices.map((choice: unknown, position) => normaliseChoice(choice, position, secret)),
    usage: reportedUsage(answer),
    fields: otherFields(answer),
  };
}

/** @throws UpstreamError `bad_response` */
export function boundChoices(choices: readonly unknown[]): void {
  if (choices.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
}

/** Parsed JSON that nobody else holds: messages are brought into form in place. */
type MutableFields = Record<string, unknown>;

/** Other words that OpenAI-compatible servers use; whatever is not known counts as a normal end. */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['refusal', 'content_filter'],
]);

/** Ends that are failures: Mistral's and OpenRouter's, and DeepSeek's when it runs out of machines. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource']);

/** Lists that some servers send as null where they have none. */
const LISTS = ['tool_calls', 'reasoning_details', 'images', 'annotations'] as const;

/**
 * An end that says `stop` although tools were called is `tool_calls`; being cut short or filtered wins over both.
 * @throws UpstreamError `upstream_error` for an end that is a failure
 */
function finishReason(reported: string, calledTools: boolean): FinishReason {
  const word = reported.toLowerCase();
  if (FAILURES.has(word))
    throw new UpstreamError('upstream_error', 'The provider broke off its answer.', { status: 200 });
  const reason = FINISH_REASONS.get(word) ?? 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}

const callsTools = ({ tool_calls: calls }: CompletionMessage): boolean => calls !== undefined && calls.length > 0;

const partText = (part: unknown): string => (isRecord(part) && typeof part.text === 'string' ? part.text : '');

/** Mistral's thoughts: `{type: "thinking", thinking: [{type: "text", text}]}`. */
function partThoughts(part: unknown): string {
  if (!isRecord(part) || part.type !== 'thinking') return '';
  const { thinking } = part;
  if (Array.isArray(thinking)) return thinking.map(partText).join('');
  return typeof thinking === 'string' ? thinking : '';
}

/** Fields under our names, in place: thoughts are `reasoning`, a list that is null is absent, content is one text. */
function rename(message: MutableFields): void {
  const { content, reasoning_content: thoughts } = message;
  if (typeof thoughts === 'string') message.reasoning ??= thoughts;
  if (Array.isArray(content)) {
    message.content = content.map(partText).join('');
    const thinking = content.map(partThoughts).join('');
    if (thinking !== '') message.reasoning ??= thinking;
  }
  for (const list of LISTS) if (message[list] === null) delete message[list];
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string';

/** Checks what the gateway itself reads; what else a message holds is the upstream's and passes as it came. */
const isMessage = (message: MutableFields): message is MutableFields & CompletionMessage =>
  isTextOrNull(message.content) && isListOfRecords(message.tool_calls);

const isDelta = (delta: MutableFields): delta is MutableFields & ChunkDelta =>
  (delta.content === undefined || isTextOrNull(delta.content)) && isListOfRecords(delta.tool_calls);

const isListOfRecords = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((item) => isRecord(item)));

const indexOf = (choice: MutableFields, position: number): number =>
  typeof choice.index === 'number' && Number.isSafeInteger(choice.index) && choice.index >= 0 ? choice.index : position;

/** A choice of a whole answer in the normal form. @throws UpstreamError */
function normaliseChoice(choice: unknown, position: number, secret: string | undefined): ChatChoice {
  if (!isRecord(choice) || !isRecord(choice.message)) throw badResponse('The provider sent a malformed answer.');
  if (isRecord(choice.error)) throw disguisedError(choice, secret);
  const { message } = choice;
  rename(message);
  message.role = 'assistant';
  message.content ??= null;
  toolCalls(message).forEach(normaliseToolCall);
  if (!isMessage(message)) throw badResponse('The provider sent a malformed answer.');
  const reported = typeof choice.finish_reason === 'string' ? choice.finish_reason : 'stop';
  return {
    ...choice,
    index: indexOf(choice, position),
    finish_reason: finishReason(reported, callsTools(message)),
    message,
  };
}

/** State of one choice in a stream so far. */
export interface ChoiceState {
  readonly index: number;
  readonly calls: BegunCalls;
  finished: boolean;
}

/** A choice of a chunk in the normal form; `states` is brought up to date. @throws UpstreamError */
export function normaliseChunkChoice(
  choice: unknown,
  position: number,
  states: ChoiceState[],
  secret: string | undefined,
): ChunkChoice {
  if (!isRecord(choice)) throw badResponse('The provider sent a malformed chunk.');
  if (isRecord(choice.error)) throw disguisedError(choice, secret);
  const index = indexOf(choice, position);
  const delta = isRecord(choice.delta) ? choice.delta : {};
  rename(delta);
  let state = states.find((each) => each.index === index);
  if (state === undefined) {
    state = { index, calls: new BegunCalls(), finished: false };
    states.push(state);
    delta.role = 'assistant';
  }
  const calls = toolCalls(delta);
  for (const call of calls) normaliseFragment(call, state.calls);
  if (calls.length > 0) boundCalls(states.reduce((sum, each) => sum + each.calls.length, 0));
  if (!isDelta(delta)) throw badResponse('The provider sent a malformed chunk.');
  if (choice.usage !== undefined) delete choice.usage; // Moonshot's, read before
  const { finish_reason: reported } = choice;
  if (typeof reported !== 'string' || reported === '') return { ...choice, index, delta, finish_reason: null };
  state.finished = true;
  return { ...choice, index, delta, finish_reason: finishReason(reported, state.calls.length > 0) };
}

/** More tool calls than any model makes in one message. */
const MAX_CALLS = 1024;

/** An id that is longer is remembered by its hash: thoughts are hidden in some. */
const LONG_ID = 128;

/** Data in a fragment about the tool call that it belongs to. */
interface NamedCall {
  /** The upstream's own `index`; undefined where it gives none. */
  readonly wire: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
}

/** The tool calls of one choice of a stream, in the order in which they began. Which one is meant is found without a search. */
class BegunCalls {
  readonly #ids: (string | undefined)[] = [];
  readonly #latestOfWire = new Map<number | undefined, number>();
  readonly #latestOfId = new Map<string, number>();

  get length(): number {
    return this.#ids.length;
  }

  begin({ wire, id }: NamedCall): void {
    const place = this.#ids.push(id) - 1;
    this.#latestOfWire.set(wire, place);
    if (id !== undefined) this.#latestOfId.set(id, place);
  }

  /** Which call a fragment belongs to; the number of calls so far when it begins another. */
  placeOf({ wire, id, name }: NamedCall): number {
    const place = this.#latestOfWire.get(wire);
    if (place === undefined) return this.length;
    const latestId = this.#ids[place];
    // Only what is named can be new: ids that change from fragment to fragment are seen in the wild.
    if (name === undefined || (id !== undefined && id === latestId)) return place;
    if (id === undefined || latestId === undefined) return wire === undefined ? this.length : place;
    return this.#latestOfId.get(id) ?? this.length;
  }
}

/** @param count of a message or a delta, or of all choices of a stream so far. @throws UpstreamError `bad_response` */
function boundCalls(count: number): void {
  if (count > MAX_CALLS) throw badResponse('The provider sent too many tool calls.');
}

/** The tool calls of a message or a delta that are objects. @throws UpstreamError `bad_response` */
function toolCalls({ tool_calls: calls }: MutableFields): MutableFields[] {
  if (!Array.isArray(calls)) return [];
  boundCalls(calls.length);
  return calls.filter(isRecord);
}

const filled = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const shortened = (id: string | undefined): string | undefined =>
  id !== undefined && id.length > LONG_ID ? hash('sha256', id) : id;

/**
 * Brings a whole tool call into OpenAI's form, in place: some providers leave the type out, or state another, or send arguments
 * as an object.
 */
function normaliseToolCall(call: MutableFields): void {
  const { function: called } = call;
  if (!isRecord(called)) return;
  call.type = 'function';
  if (isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
}

/**
 * Brings a fragment into OpenAI's form, in place: `index` numbers the calls in the order in which they begin, whatever the
 * upstream numbers; id, type and name stand in the first fragment only. @throws UpstreamError `bad_response`
 */
function normaliseFragment(fragment: MutableFields, begun: BegunCalls): void {
  const { function: called } = fragment;
  const wire = typeof fragment.index === 'number' ? fragment.index : undefined;
  const id = shortened(filled(fragment.id));
  const name = isRecord(called) ? filled(called.name) : undefined;
  const place = begun.placeOf({ wire, id, name });
  if (fragment.index !== place) fragment.index = place;
  if (isRecord(called) && isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
  if (place === begun.length) {
    begun.begin({ wire, id, name });
    if (isRecord(called) && fragment.type !== 'function') fragment.type = 'function';
    return;
  }
  if (fragment.id !== undefined) delete fragment.id;
  if (fragment.type !== undefined) delete fragment.type;
  if (isRecord(called) && called.name !== undefined) delete called.name;
}

/**
 * Usage of OpenAI's form, with what its imitators add. `prompt_tokens` includes cached ones everywhere. Undefined when there is
 * none, the two main numbers are not counts, or both are zero.
 */
export function openAiUsage(reported: unknown): Usage | undefined {
  if (!isRecord(reported)) return undefined;
  const promptTokens = count(reported.prompt_tokens);
  const written = count(reported.completion_tokens);
  if (promptTokens === undefined || written === undefined || promptTokens + written === 0) return undefined;
  const prompt = record(reported.prompt_tokens_details);
  const completion = record(reported.completion_tokens_details);
  const writes = record(prompt.cache_creation);
  const write1h = count(writes.ephemeral_1h_input_tokens) ?? 0;
  const allWrites = count(prompt.cache_write_tokens) ?? count(prompt.cache_creation_tokens) ?? 0;
  const reasoningTokens = count(completion.reasoning_tokens) ?? count(reported.reasoning_tokens) ?? 0;
  // xAI counts reasoning apart from what was written; the total shows where a provider does so.
  const isBeside = count(reported.total_tokens) === promptTokens + written + reasoningTokens;
  return normaliseUsage({
    promptTokens,
    completionTokens: isBeside ? written + reasoningTokens : written,
    reasoningTokens,
    cachedTokens: count(prompt.cached_tokens) ?? cachedBeside(reported),
    cacheWrite5mTokens: count(writes.ephemeral_5m_input_tokens) ?? Math.max(0, allWrites - write1h),
    cacheWrite1hTokens: write1h,
    promptAudioTokens: count(prompt.audio_tokens) ?? 0,
    promptImageTokens: count(prompt.image_tokens) ?? 0,
    promptVideoTokens: count(prompt.video_tokens) ?? 0,
    completionAudioTokens: count(completion.audio_tokens) ?? 0,
    completionImageTokens: count(completion.image_tokens) ?? 0,
    webSearches: count(record(reported.server_tool_use).web_search_requests) ?? 0,
  });
}

/** Cached tokens outside of the details: Moonshot and Together, DeepSeek, Mistral. */
const cachedBeside = (reported: Readonly<Record<string, unknown>>): number =>
  count(reported.cached_tokens) ?? count(reported.prompt_cache_hit_tokens) ?? count(reported.num_cached_tokens) ?? 0;

/** The usage of an answer or of a chunk, where it stands: Groq's own object and Moonshot's choices have it too. */
export function reportedUsage(answer: Readonly<Record<string, unknown>>): Usage | undefined {
  const { usage, x_groq: groq, choices } = answer;
  const [choice] = Array.isArray(choices) ? choices : [];
  return openAiUsage(usage) ?? openAiUsage(record(groq).usage) ?? openAiUsage(record(choice).usage);
}

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

/** With any other type, an upstream could choose what its conversion to text does. */
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

/** Place of a fault that a web framework found. */
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
