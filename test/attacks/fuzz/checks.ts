// What every answer of the product must be.
import type { IncomingHttpHeaders } from 'node:http';
import type { CallMetadata } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { isRecord, record } from '../../../src/providers/wire/fields.ts';
import { eventsOf } from '../../support/chat.ts';
import type { Answer } from '../../support/request.ts';
import { mayCall } from './keys.ts';
import { servedAs } from './served.ts';
import type { Marked } from './upstreams.ts';

const validateChatCompletion = validator('ChatCompletion');
const validateErrorEnvelope = validator('ErrorEnvelope');
const validateImageAnswer = validator('ImageAnswer');
const validateImageEvent = validator('ImageEvent');
const validateModelList = validator('ModelList');
const validateModerationAnswer = validator('ModerationAnswer');

/** A broken invariant, and how. */
export type Broken = readonly [invariant: string, detail: string];

export const NO_500 = 'no call ends in a fault of ours';
export const WELL_FORMED = 'every answer is well-formed and says what the API says';

/** The parts of a request that its answer depends on. */
export interface Asked {
  readonly method: string;
  /** With its query, as sent. */
  readonly path: string;
  /**
   * The answer need only be JSON. The upstream may have answered with something else than its API says: the product checks what it
   * reads itself, and the rest passes as it came. Or the caller has asked for metadata in another form than the schema's.
   */
  readonly isLoose?: boolean;
}

const VALIDATORS: readonly (readonly [RegExp, (json: unknown) => boolean])[] = [
  [/^\/v1\/chat\/completions\/?$/, validateChatCompletion],
  [/^\/v1\/images\/generations\/?$/, validateImageAnswer],
  [/^\/v1\/moderations\/?$/, validateModerationAnswer],
  [/^\/v1\/models$/, validateModelList],
];

const brief = ({ status, text }: Pick<Answer, 'status' | 'text'>): string => `${status} ${text.slice(0, 400)}`;

const REFUSALS_OF_503: readonly unknown[] = ['overloaded', 'upstream_overloaded'];

/** What `/ready` says when there is too much to do. */
const isNotReady = ({ path }: Asked, { status, json }: Answer): boolean =>
  status === 503 && /^[^?]*\/ready\b/i.test(path) && record(json).status === 'not_ready';

/** An error of RFC 6749, and a page that tells a person of one: at other paths than the API's. */
const isOAuthError = ({ path }: Asked, { json }: Answer): boolean =>
  !path.startsWith('/v1/') &&
  typeof record(json).error === 'string' &&
  typeof record(json).error_description === 'string';

const isPage = ({ path }: Asked, { headers, text }: Answer): boolean =>
  !path.startsWith('/v1/') &&
  headers['content-type'] === 'text/html; charset=utf-8' &&
  text.startsWith('<!doctype html>') &&
  String(headers['content-security-policy']).startsWith("default-src 'none'; ");

function* errorFaults(asked: Asked, answer: Answer): Generator<Broken> {
  const { status, json, headers } = answer;
  if (asked.method === 'HEAD' || isNotReady(asked, answer)) return;
  if (isOAuthError(asked, answer) || isPage(asked, answer)) {
    if (status === 500 || record(json).error === 'server_error') yield [NO_500, brief(answer)];
    return;
  }
  if (!validateErrorEnvelope(json)) {
    yield [WELL_FORMED, `no error envelope: ${brief(answer)}`];
    return;
  }
  if (!/^application\/json\b/.test(headers['content-type'] ?? ''))
    yield [WELL_FORMED, `an error of type ${headers['content-type']}`];
  const { code } = json.error;
  if (status === 500 || code === 'internal_error' || (status === 503 && !REFUSALS_OF_503.includes(code)))
    yield [NO_500, brief(answer)];
}

/**
 * What is wrong with an answer of `/mcp`: JSON-RPC in JSON or in events, with the words of the error envelope where there are
 * any.
 */
function* mcpFaults(answer: Answer): Generator<Broken> {
  const { status, headers, json, text } = answer;
  if (status === 202 && text === '') return;
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  const messages = isStream(headers) ? events.map((line): unknown => JSON.parse(line.slice('data: '.length))) : [json];
  if (messages.length === 0) yield [WELL_FORMED, `an empty answer: ${brief(answer)}`];
  for (const message of messages) {
    const { jsonrpc, error, result } = record(message);
    if (jsonrpc !== '2.0') yield [WELL_FORMED, `no JSON-RPC: ${brief(answer)}`];
    const code = record(record(error).data).code ?? record(record(result)._meta)['portcullis/code'];
    const isOurs = code === 'internal_error' || code === 'policy_unavailable';
    if (isOurs || (status >= 500 && !REFUSALS_OF_503.includes(code)) || record(error).code === -32603)
      yield [NO_500, brief(answer)];
  }
}

/** By what it is: `/mcp` has many spellings. */
const isMcp = ({ path }: Asked, { text, status }: Answer): boolean =>
  !path.startsWith('/v1/') && (status === 202 || text.includes('"jsonrpc":"2.0"'));

type End = Pick<ReturnType<typeof eventsOf>, 'done' | 'error'>;

/** How a stream of events ends, of chats or of images. @throws Error for what is no event, and for one that may not stand there */
function endOf(text: string, isEvent: (value: unknown) => boolean): End {
  const events = text.split('\n\n').filter((event) => event !== '' && !event.startsWith(': '));
  const values = events.map((event): unknown => {
    const data = /^(?:event: .+\n)?data: ([^\n]+)$/.exec(event)?.[1]; // U+2028, at which a dot stops, ends no line
    if (data === undefined) throw new Error(`no event: ${event}`);
    return data === '[DONE]' ? data : JSON.parse(data);
  });
  const last = values.at(-1);
  const error = validateErrorEnvelope(last) ? last.error : undefined;
  const isMark = last === '[DONE]' || error !== undefined;
  const odd = (isMark ? values.slice(0, -1) : values).find((value) => !isEvent(value));
  if (odd !== undefined) throw new Error(`no event of the API: ${JSON.stringify(odd)}`);
  return { done: last === '[DONE]' || record(last).type === 'image_generation.completed', error };
}

function* streamFaults({ path, isLoose = false }: Asked, { text }: Answer): Generator<Broken> {
  try {
    const isImage = path.startsWith('/v1/images/');
    const isEvent = isLoose ? isRecord : validateImageEvent;
    const { done, error } = isImage || isLoose ? endOf(text, isEvent) : eventsOf(text);
    if (!done && error === undefined) yield [WELL_FORMED, `a stream that ends in silence: ${text.slice(-400)}`];
    if (error?.code === 'internal_error' || error?.code === 'policy_unavailable')
      yield [NO_500, `told in band: ${error.message}`];
  } catch (error) {
    yield [WELL_FORMED, `a stream of ${String(error).slice(0, 400)}`];
  }
}

const isStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true;

/** What is wrong with a whole answer. */
export function* answerFaults(asked: Asked, answer: Answer): Generator<Broken> {
  const { status, headers, json } = answer;
  if (!/^req_[0-9a-f]{32}$/.test(String(headers['x-request-id'])))
    yield [WELL_FORMED, `no request id: ${brief(answer)}`];
  if (headers['x-injected'] !== undefined) yield [WELL_FORMED, 'a header that the caller wrote'];
  if (status < 200 || status >= 600) yield [WELL_FORMED, brief(answer)];
  else if (isMcp(asked, answer)) yield* mcpFaults(answer);
  else if (status >= 400) yield* errorFaults(asked, answer);
  else if (isStream(headers)) yield* streamFaults(asked, answer);
  else if (status === 200 && asked.method !== 'HEAD' && asked.method !== 'OPTIONS') {
    const path = asked.path.split('?')[0] ?? '';
    const validate = VALIDATORS.find(([pattern]) => pattern.test(path))?.[1];
    const isValid = asked.isLoose === true ? isRecord(json) : validate === undefined || validate(json);
    if (!isValid) yield [WELL_FORMED, `not by its schema: ${brief(answer)}`];
  }
}

/** What a chat that was answered whole says of itself. */
export interface Served {
  readonly callId: string;
  /** USD; undefined where the price is not known. */
  readonly cost: number | undefined;
  readonly metadata: CallMetadata;
}

/** Undefined for an answer that is no whole chat. */
export function servedChat({ status, headers, json, text }: Answer): Served | undefined {
  if (status !== 200) return undefined;
  if (!isStream(headers)) {
    return validateChatCompletion(json)
      ? { callId: json.metadata.log_id, cost: json.usage.cost, metadata: json.metadata }
      : undefined;
  }
  try {
    const { chunks, done } = eventsOf(text);
    const last = chunks.findLast(({ metadata }) => metadata !== undefined);
    if (!done || last?.metadata === undefined) return undefined;
    return { callId: last.metadata.log_id, cost: last.usage?.cost, metadata: last.metadata };
  } catch {
    return undefined; // what is wrong with it `answerFaults` says
  }
}

/** Whether the model that answered is one that the call's key may call; what is wrong otherwise. */
export function policyFault({ metadata }: Served, { key, address }: Marked): string | undefined {
  const { used_provider: provider, used_model: model } = metadata;
  const served = servedAs(provider, model);
  if (served === undefined) return `${provider}/${model}, which no upstream serves`;
  if (mayCall(key, { ...served, action: 'chat', address })) return undefined;
  return `${provider}/${model} for the key "${key.name}" from ${address ?? 'nowhere'}`;
}
