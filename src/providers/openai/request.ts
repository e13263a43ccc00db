import { KNOWN_PROVIDERS, OTHER_SERVERS } from '../../config/upstreams.ts';
import type {
  ChatMessage,
  FieldShape,
  MessageDialect,
  MessageToolCall,
  ProviderDialect,
} from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { ChatCall, Endpoint } from '../wire/adapter.ts';
import {
  anything,
  type Fields,
  isRecord,
  listOf,
  NONE,
  objectOf,
  type RequestTable,
  single,
  type Takes,
  takenFields,
} from '../wire/fields.ts';

type Body = Record<string, unknown>;

/**
 * The caller's request with the provider's `model`, in its dialect. Usage is always asked for.
 */
export function buildChatRequest(call: ChatCall, endpoint: Endpoint, dialect: OpenAiDialect): OutboundRequest {
  return openAiPost('/chat/completions', chatBody(call, dialect), endpoint, call.request.stream === true);
}

function chatBody(
  { request, mapping, namedFields: named = NONE, maxOutputTokens }: ChatCall,
  dialect: OpenAiDialect,
): Body {
  const body: Body = takenFields(request, { extensions: dialect.extensions, named });
  body.model = mapping.externalId;
  body.messages = translateMessages(request.messages, dialect.messages, mapping.reasoning);
  for (const field of dialect.cannot) Reflect.deleteProperty(body, field);
  for (const [field, name] of Object.entries(dialect.renamed ?? {})) rename(body, field, name);
  limitOutput(body, dialect, maxOutputTokens);
  if (dialect.noStreamOptions === true) {
    delete body.stream_options;
  } else if (request.stream === true) {
    const { stream_options: options } = request;
    body.stream_options = isRecord(options) ? { ...options, include_usage: true } : { include_usage: true };
  }
  return body;
}

/** A caller who used the provider's own name too is taken at that word. */
function rename(body: Body, field: string, name: string): void {
  const value = entryOf(body, field);
  if (value === undefined) return;
  Reflect.deleteProperty(body, field);
  if ((entryOf(body, name) ?? null) === null) Reflect.set(body, name, value);
}

/** Puts the most tokens to generate, ours before the caller's, into the one field that the provider knows. */
function limitOutput(body: Body, { maxTokens }: OpenAiDialect, ours: number | undefined): void {
  if (maxTokens === undefined && ours === undefined) return;
  const { max_tokens: older, max_completion_tokens: newer } = body;
  const limit = ours ?? newer ?? older;
  const field = maxTokens ?? (typeof newer === 'number' ? 'max_completion_tokens' : 'max_tokens');
  delete body[field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'];
  if (limit !== undefined) body[field] = limit;
}

/** Fields that SDKs and other gateways add to an answer, and send back with it: no provider knows them. */
const NEVER_SENT = ['parsed', 'provider_specific_fields', 'thinking_blocks'];

/** For servers of which no dialect is known. */
const AS_IT_CAME: MessageDialect = { systemForDeveloper: false, leftOut: [] };

/** Stands for thoughts that were never ours: DeepSeek takes an empty text for none at all. */
const BLANK = ' ';

/**
 * A conversation as a provider's dialect wants it; messages that need no change are the caller's own objects.
 * @param reasons whether the model does: only then it gets thoughts back
 */
function translateMessages(
  messages: readonly ChatMessage[],
  dialect: MessageDialect = AS_IT_CAME,
  reasons: boolean,
): readonly object[] {
  return messages.map((message) => translateMessage(message, dialect, reasons));
}

function translateMessage(message: ChatMessage, dialect: MessageDialect, reasons: boolean): object {
  const { systemForDeveloper, leftOut } = dialect;
  const thoughts = reasons ? thoughtsOf(message, dialect) : undefined;
  const renamesRole = systemForDeveloper && message.role === 'developer';
  const calls = translateCalls(message.tool_calls, leftOut);
  const audio = audioId(message.audio);
  const isChanged = thoughts !== undefined || renamesRole || calls !== message.tool_calls || audio !== message.audio;
  if (!isChanged && !hasAny(message, leftOut) && !hasAny(message, NEVER_SENT)) return message;
  const translated: Record<string, unknown> = without(without(message, NEVER_SENT), leftOut);
  if (renamesRole) translated.role = 'system';
  if (calls !== undefined) translated.tool_calls = calls;
  if (audio !== undefined) translated.audio = audio;
  if (dialect.thoughts !== undefined && thoughts !== undefined) translated[dialect.thoughts] = thoughts;
  return translated;
}

/** Thoughts of an assistant, if its provider wants them back. */
function thoughtsOf(message: ChatMessage, { thoughts: field, thoughtsRequired }: MessageDialect): string | undefined {
  if (field === undefined || message.role !== 'assistant') return undefined;
  const { reasoning, reasoning_content: content }: Fields = { ...message };
  for (const thoughts of field === 'reasoning' ? [reasoning, content] : [content, reasoning]) {
    if (typeof thoughts === 'string' && thoughts !== '') return thoughts;
  }
  return thoughtsRequired === true && calledTools(message) ? BLANK : undefined;
}

const calledTools = ({ tool_calls: calls }: ChatMessage): boolean =>
  calls !== undefined && calls !== null && calls.length > 0;

/** An earlier spoken answer by its id alone: what our answers hold of it is not sent back. */
function audioId(audio: ChatMessage['audio']): ChatMessage['audio'] {
  if (audio === undefined || audio === null || Object.keys(audio).length <= 1) return audio;
  return audio.id === undefined ? {} : { id: audio.id };
}

/** Tool calls without the marks of other providers, and without what SDKs add; the same list where there are none. */
function translateCalls(
  calls: ChatMessage['tool_calls'],
  leftOut: readonly string[],
): ChatMessage['tool_calls'] | Fields[] {
  const isClean = (call: MessageToolCall): boolean =>
    call.index === undefined && call.function?.parsed_arguments === undefined && !hasAny(call, leftOut);
  if (calls === undefined || calls === null || calls.every(isClean)) return calls;
  return calls.map((call) => {
    const { index: _, function: called, ...rest } = call;
    const { parsed_arguments: __, ...sent } = called ?? {};
    return without(called === undefined ? rest : { ...rest, function: sent }, leftOut);
  });
}

const hasAny = (object: object, fields: readonly string[]): boolean =>
  fields.some((field) => Object.hasOwn(object, field));

function without(object: object, fields: readonly string[]): Record<string, unknown> {
  const rest: Record<string, unknown> = { ...object };
  for (const field of fields) Reflect.deleteProperty(rest, field);
  return rest;
}

/** In what a provider's chat endpoint differs from OpenAI's; its extensions as checks of what stands in a field. */
export type OpenAiDialect = Readonly<Omit<ProviderDialect, 'extensions' | 'note'>> & Pick<RequestTable, 'extensions'>;

/** Marks that answers of this gateway carry and that only the provider they came from understands. */
const MARKS = ['reasoning', 'reasoning_content', 'reasoning_details', 'images', 'extra_content'];

function takes(shape: FieldShape): Takes {
  if (shape === 'single') return single;
  if (shape === 'any') return anything;
  if (!Array.isArray(shape)) return objectOf(fieldsOf(shape));
  const items = shape.map(takes);
  return listOf((value) => items.some((holds) => holds(value)));
}

const fieldsOf = (shapes: Readonly<Record<string, FieldShape>>): OpenAiDialect['extensions'] =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, takes(shape)]));

const dialectOf = ({ extensions, messages, note: _, ...dialect }: ProviderDialect): OpenAiDialect => ({
  ...dialect,
  extensions: fieldsOf(extensions),
  ...(messages === undefined ? {} : { messages: { ...messages, leftOut: [...MARKS, ...messages.leftOut] } }),
});

const OTHER = dialectOf(OTHER_SERVERS);

const DIALECTS: ReadonlyMap<string, OpenAiDialect> = new Map(
  KNOWN_PROVIDERS.flatMap(({ id, dialect }) => (dialect === undefined ? [] : [[id, dialectOf(dialect)] as const])),
);

/** The dialect of a provider of the catalogue; for any other, of a server that takes what OpenAI's takes. */
export const openAiDialect = (providerId: string): OpenAiDialect => DIALECTS.get(providerId) ?? OTHER;

/** A JSON request to a path under the base URL. @param stream whether the answer comes as events, not whole */
export function openAiPost(path: string, body: object, endpoint: Endpoint, stream = false): OutboundRequest {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
  };
  if (endpoint.secret !== undefined) headers.authorization = `Bearer ${endpoint.secret}`;
  return {
    origin: endpoint.base.origin,
    path: `${endpoint.base.path}${path}`,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    stream,
    addresses: endpoint.addresses,
  };
}
