import type { GatheredResponse, StreamedResponse } from '../net/exchange.ts';
import { SseParser } from '../net/sse.ts';
import type { OutboundRequest } from '../net/transport.ts';
import type { Adapter, ChatCall, Endpoint, UpstreamChunk, UpstreamCompletion } from './adapter.ts';
import { isRecord, parseJson } from './json.ts';
import { type ChoiceState, normaliseChoice, normaliseChunkChoice } from './openai-choice.ts';
import { openAiImages } from './openai-images.ts';
import { openAiModerations } from './openai-moderations.ts';
import { openAiUsage } from './openai-usage.ts';
import { scrub } from './scrub.ts';
import { badResponse, fromStatus, type UpstreamError } from './upstream-error.ts';

/** Longest event of a stream: room for an image in base64. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** More choices than any request may ask for. */
const MAX_CHOICES = 128;

/** The adapter for every server that speaks OpenAI's wire format. */
export const openAiAdapter: Adapter = {
  buildRequest,
  parseResponse,
  parseStream,
  parseError,
  images: openAiImages,
  moderations: openAiModerations,
};

/** The caller's request with our `model`; unknown fields go along. Usage is always asked for. */
function buildRequest(call: ChatCall, endpoint: Endpoint): OutboundRequest {
  const { request, mapping, maxOutputTokens } = call;
  const stream = request.stream === true;
  const body: Record<string, unknown> = { ...request, model: mapping.externalId };
  if (maxOutputTokens !== undefined) body.max_tokens = maxOutputTokens;
  if (stream) {
    const { stream_options: options } = request;
    body.stream_options = isRecord(options) ? { ...options, include_usage: true } : { include_usage: true };
  }
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
  };
  if (endpoint.secret !== undefined) headers.authorization = `Bearer ${endpoint.secret}`;
  return {
    origin: endpoint.base.origin,
    path: `${endpoint.base.path}/chat/completions`,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    stream,
    addresses: endpoint.addresses,
  };
}

function parseResponse(response: GatheredResponse): UpstreamCompletion {
  const answer = parseJson(response.text);
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  refuseError(answer);
  const { id, object, created, metadata, model, choices, usage, error, ...fields } = answer;
  if (!Array.isArray(choices) || choices.length === 0) {
    throw badResponse('The provider sent an empty answer.');
  }
  bound(choices);
  return {
    model: typeof model === 'string' ? model : undefined,
    choices: choices.map((choice: unknown, position) => normaliseChoice(choice, position)),
    usage: openAiUsage(usage),
    fields,
  };
}

async function* parseStream(response: StreamedResponse): AsyncGenerator<UpstreamChunk, void, undefined> {
  const parser = new SseParser(MAX_EVENT_LENGTH);
  const states = new Map<number, ChoiceState>();
  for await (const bytes of response.chunks) {
    for (const event of parser.push(bytes)) {
      if (event.data === '[DONE]') {
        response.drain();
        requireFinished(states);
        return;
      }
      yield parseChunk(event.event, event.data, states);
    }
  }
  requireFinished(states);
}

function parseChunk(event: string | undefined, data: string, states: Map<number, ChoiceState>): UpstreamChunk {
  const chunk = parseJson(data);
  if (!isRecord(chunk)) throw badResponse('The provider sent a malformed chunk.');
  if (event === 'error') throw disguisedError();
  refuseError(chunk);
  const { id, object, created, metadata, model, choices, usage, error, ...fields } = chunk;
  const list: unknown = choices ?? [];
  if (!Array.isArray(list)) throw badResponse('The provider sent a malformed chunk.');
  bound(list);
  const normal = list.map((choice: unknown, position) => normaliseChunkChoice(choice, position, states));
  if (states.size > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
  return { model: typeof model === 'string' ? model : undefined, choices: normal, usage: openAiUsage(usage), fields };
}

/** A stream without an end of every choice it began was cut, whatever its last line says. */
function requireFinished(states: ReadonlyMap<number, ChoiceState>): void {
  if (states.size === 0) throw badResponse('The provider sent an empty stream.');
  for (const state of states.values()) if (!state.finished) throw badResponse("The provider's stream was cut off.");
}

function bound(choices: readonly unknown[]): void {
  if (choices.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
}

function refuseError(answer: Readonly<Record<string, unknown>>): void {
  if (answer.error !== undefined && answer.error !== null) throw disguisedError();
}

/** The text is kept back: under a success nothing tells whether it is one about credentials. */
const disguisedError = (): UpstreamError => badResponse('The provider reported an error inside a successful answer.');

function parseError(response: GatheredResponse, secret: string | undefined): UpstreamError {
  if (response.status >= 200 && response.status < 300) {
    return badResponse('The provider did not answer with a stream.', response.status);
  }
  return fromStatus(response.status, scrub(errorText(parseJson(response.text)), secret));
}

/** The message of the envelopes in use: OpenAI's, a bare string, and the two of common web frameworks. */
function errorText(body: unknown): string {
  if (!isRecord(body)) return '';
  const { error } = body;
  for (const text of [isRecord(error) ? error.message : error, body.message, body.detail]) {
    if (typeof text === 'string') return text;
  }
  return '';
}
