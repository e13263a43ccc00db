import type { GatheredResponse, StreamedResponse } from '../net/exchange.ts';
import { SseParser } from '../net/sse.ts';
import type { Adapter, UpstreamChunk, UpstreamCompletion } from './adapter.ts';
import { isRecord, parseJson } from './json.ts';
import { type ChoiceState, normaliseChoice, normaliseChunkChoice } from './openai-choice.ts';
import { type OpenAiDialect, openAiDialect } from './openai-dialects.ts';
import { disguisedError, isError, readError } from './openai-error.ts';
import { openAiImages } from './openai-images.ts';
import { openAiModerations } from './openai-moderations.ts';
import { buildChatRequest } from './openai-request.ts';
import { reportedUsage } from './openai-usage.ts';
import { openAiAnswer } from './openai-whole.ts';
import { badResponse } from './upstream-error.ts';

/** Longest event of a stream: room for an image in base64. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** More choices than any request may ask for. */
const MAX_CHOICES = 128;

const adapters = new Map<OpenAiDialect, Adapter>();

/** The adapter for a provider that speaks OpenAI's wire format, each in its dialect. One for all that have none of their own. */
export function openAiAdapterFor(providerId: string): Adapter {
  const dialect = openAiDialect(providerId);
  const known = adapters.get(dialect);
  if (known !== undefined) return known;
  const adapter: Adapter = {
    buildRequest: (call, endpoint) => buildChatRequest(call, endpoint, dialect),
    parseResponse,
    parseStream,
    parseError: readError,
    images: openAiImages,
    moderations: openAiModerations,
  };
  adapters.set(dialect, adapter);
  return adapter;
}

/** The adapter for a server of which no dialect is known: the sandbox, the environment's upstreams, custom providers. */
export const openAiAdapter: Adapter = openAiAdapterFor('');

function parseResponse(response: GatheredResponse): UpstreamCompletion {
  const answer = openAiAnswer(response.text);
  const { id, object, created, metadata, model, choices, usage, error, ...fields } = answer;
  if (!Array.isArray(choices) || choices.length === 0) {
    throw badResponse('The provider sent an empty answer.');
  }
  bound(choices);
  return {
    model: typeof model === 'string' ? model : undefined,
    choices: choices.map((choice: unknown, position) => normaliseChoice(choice, position)),
    usage: reportedUsage(answer),
    fields,
  };
}

async function* parseStream(response: StreamedResponse): AsyncGenerator<UpstreamChunk, void, undefined> {
  const parser = new SseParser(MAX_EVENT_LENGTH);
  const states: ChoiceState[] = [];
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

function parseChunk(event: string | undefined, data: string, states: ChoiceState[]): UpstreamChunk {
  const chunk = parseJson(data);
  if (!isRecord(chunk)) throw badResponse('The provider sent a malformed chunk.');
  if (event === 'error' || isError(chunk)) throw disguisedError(chunk);
  const { id, object, created, metadata, model, choices, usage, error, ...fields } = chunk;
  const list: unknown = choices ?? [];
  if (!Array.isArray(list)) throw badResponse('The provider sent a malformed chunk.');
  bound(list);
  const normal = list.map((choice: unknown, position) => normaliseChunkChoice(choice, position, states));
  if (states.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
  return { model: typeof model === 'string' ? model : undefined, choices: normal, usage: reportedUsage(chunk), fields };
}

/** A stream without an end of every choice it began was cut, whatever its last line says. */
function requireFinished(states: readonly ChoiceState[]): void {
  if (states.length === 0) throw badResponse('The provider sent an empty stream.');
  for (const state of states) if (!state.finished) throw badResponse("The provider's stream was cut off.");
}

function bound(choices: readonly unknown[]): void {
  if (choices.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
}
