import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatMessage, ChatRequest, FinishReason } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { entryOf } from '../../lib/text.ts';
import { isRecord, parseJson } from '../wire/fields.ts';
import { imageSize, type Painter } from './draw-image.ts';
import { imageTokens } from './images.ts';
import { CREATED, completesChats, detailOf, TOKEN_LENGTH, textTokens } from './models.ts';
import { beginEvents, type Fault, faultIn, faultOf, sendError, sendEvent, sendFault, sendJson } from './wire.ts';

const validateChatRequest = validator('ChatRequest');

/** Pace of `sandbox-slow`. */
export interface SandboxPace {
  /** Milliseconds before the answer begins. */
  readonly firstByteMs: number;
  /** Milliseconds before each further event of a stream. */
  readonly chunkMs: number;
}

const AT_ONCE: SandboxPace = { firstByteMs: 0, chunkMs: 0 };

const EMPTY = { object: 'chat.completion', choices: [] };

/** `POST /v1/chat/completions`. Returns when the answer is written; stops early when `signal` says that the caller left. */
export async function completeChat(
  body: string,
  response: ServerResponse,
  { slow, painter }: { readonly slow: SandboxPace; readonly painter: Painter },
  signal: AbortSignal,
): Promise<void> {
  const request = parseJson(body);
  if (!validateChatRequest(request)) {
    sendError(response, 400, 'invalid_request', 'The request is not a chat completion request.');
    return;
  }
  if (!completesChats(request.model)) {
    sendError(response, 404, 'model_not_found', `The sandbox has no chat model ${request.model}.`);
    return;
  }
  const stream = request.stream === true;
  const fault = wantedFault(request);
  if (fault !== undefined) {
    sendFault(response, fault, { stream, empty: EMPTY });
    return;
  }
  const pace = request.model === 'sandbox-slow' ? slow : AT_ONCE;
  await pause(pace.firstByteMs, signal);
  const head = { id: `chatcmpl-${createHash('sha256').update(body).digest('hex').slice(0, 24)}`, created: CREATED };
  const said = await illustrated(answer(request), request, painter, signal);
  if (stream) await sendStream(request, said, head, response, { chunkMs: pace.chunkMs, signal });
  else sendJson(response, 200, wholeAnswer(request, said, head));
}

/** The model that fails does so always, those that draw where the prompt says so, the others never. */
function wantedFault(request: ChatRequest): Fault | undefined {
  if (request.model === 'sandbox-faulty') return faultOf(lastText(request));
  return detailOf(request.model) === undefined ? undefined : faultIn(lastText(request));
}

interface Head {
  readonly id: string;
  readonly created: number;
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await sleep(milliseconds, undefined, { signal });
}

function wholeAnswer(request: ChatRequest, { choices, usage }: SandboxAnswer, head: Head): object {
  return {
    ...head,
    object: 'chat.completion',
    model: request.model,
    choices: choices.map((choice) => ({
      index: choice.index,
      message: wholeMessage(choice),
      logprobs: null,
      finish_reason: choice.finishReason,
    })),
    usage,
  };
}

function wholeMessage({ pieces, tool, images }: SandboxChoice): object {
  const text = pieces.join('');
  if (tool === undefined) return { role: 'assistant', content: text, ...shown(images) };
  const call = { id: tool.id, type: 'function', function: { name: tool.name, arguments: text } };
  return { role: 'assistant', content: null, tool_calls: [call], ...shown(images) };
}

/** Pictures as a message, or a part of one, carries them; nothing where there are none. */
function shown(images: readonly string[]): object {
  if (images.length === 0) return {};
  const parts = images.map((image) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }));
  return { images: parts };
}

async function sendStream(
  request: ChatRequest,
  whole: SandboxAnswer,
  head: Head,
  response: ServerResponse,
  { chunkMs, signal }: { chunkMs: number; signal: AbortSignal },
): Promise<void> {
  const includeUsage = request.stream_options?.include_usage === true;
  const envelope = { ...head, object: 'chat.completion.chunk', model: request.model };
  beginEvents(response);
  for (const choice of streamedChoices(whole)) {
    sendEvent(response, JSON.stringify({ ...envelope, choices: [choice], ...(includeUsage ? { usage: null } : {}) }));
    await pause(chunkMs, signal);
  }
  if (includeUsage) sendEvent(response, JSON.stringify({ ...envelope, choices: [], usage: whole.usage }));
  sendEvent(response, '[DONE]');
  response.end();
}

/** The deltas of all choices in the order sent: role, then token by token in turns, then the ends. */
function* streamedChoices({ choices }: SandboxAnswer): Generator<object> {
  for (const { index, tool } of choices) {
    yield { index, delta: { role: 'assistant', content: tool === undefined ? '' : null }, finish_reason: null };
  }
  const longest = Math.max(...choices.map(({ pieces }) => pieces.length));
  for (let position = 0; position < longest; position++) {
    for (const choice of choices) {
      const delta = deltaAt(choice, position);
      if (delta !== undefined) yield { index: choice.index, delta, finish_reason: null };
    }
  }
  for (const { index, images } of choices) {
    if (images.length > 0) yield { index, delta: shown(images), finish_reason: null };
  }
  for (const { index, finishReason } of choices) yield { index, delta: {}, finish_reason: finishReason };
}

function deltaAt({ pieces, tool }: SandboxChoice, position: number): object | undefined {
  const piece = pieces[position];
  if (piece === undefined) return undefined;
  if (tool === undefined) return { content: piece };
  const first = position === 0 ? { id: tool.id, type: 'function' } : {};
  const name = position === 0 ? { name: tool.name } : {};
  return { tool_calls: [{ index: 0, ...first, function: { ...name, arguments: piece } }] };
}

/** Content of one choice of the sandbox: text, or a call of one tool. */
interface SandboxChoice {
  readonly index: number;
  /** The text, or the arguments of the tool, by token. */
  readonly pieces: readonly string[];
  readonly tool: { readonly id: string; readonly name: string } | undefined;
  readonly finishReason: FinishReason;
  /** Pictures in base64. */
  readonly images: readonly string[];
}

interface SandboxAnswer {
  readonly choices: readonly SandboxChoice[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
    /** Details of the models that draw. */
    readonly completion_tokens_details?: { readonly image_tokens: number };
  };
}

const TOKENS_PER_MEDIA_PART = 85;
const MAX_OUTPUT_TOKENS = 4096;
const MAX_ECHO_LENGTH = 2000;

/** The sandbox's whole answer: a pure function of the request. */
function answer(request: ChatRequest): SandboxAnswer {
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => choice(request, index));
  const promptTokens = request.messages.reduce((sum, message) => sum + messageTokens(message), 0);
  const completionTokens = choices.reduce((sum, { pieces }) => sum + pieces.length, 0);
  return {
    choices,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

/** The text of the last message: what the sandbox echoes, and where its directives stand. */
function lastText(request: ChatRequest): string {
  const last = request.messages.at(-1);
  return last === undefined ? '' : messageText(last).slice(0, MAX_ECHO_LENGTH).toWellFormed();
}

function choice(request: ChatRequest, index: number): SandboxChoice {
  const tool = calledTool(request);
  const whole = tool === undefined ? cutAtStop(replyText(request, index), request.stop) : tool.arguments;
  const pieces = tokens(whole);
  const limit = Math.min(request.max_completion_tokens ?? request.max_tokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS);
  const isCut = pieces.length > limit;
  return {
    index,
    pieces: isCut ? pieces.slice(0, limit) : pieces,
    tool: tool === undefined ? undefined : { id: `call_${request.messages.length}_${index}`, name: tool.name },
    finishReason: isCut ? 'length' : tool === undefined ? 'stop' : 'tool_calls',
    images: [],
  };
}

function replyText(request: ChatRequest, index: number): string {
  const said = request.messages.at(-1)?.role === 'tool' ? 'The tool said' : 'You said';
  const text = `${said}${index === 0 ? '' : ` (${index + 1})`}: ${lastText(request)}`;
  const format = request.response_format;
  if (format?.type === 'json_object') return JSON.stringify({ reply: text });
  if (format?.type === 'json_schema') return JSON.stringify(jsonSample(format.json_schema?.schema));
  return text;
}

/** The tool that the request forces, or whose name stands as a word in the user's last message. */
function calledTool(request: ChatRequest): { name: string; arguments: string } | undefined {
  const { tool_choice: choice } = request;
  const last = request.messages.at(-1);
  const functions = (request.tools ?? []).flatMap((tool) => (tool.function === undefined ? [] : [tool.function]));
  if (choice === 'none' || last?.role === 'tool') return undefined;
  const forced = typeof choice === 'object' && choice !== null ? choice.function?.name : undefined;
  const words = new Set(lastText(request).split(/[^A-Za-z0-9_-]+/));
  const called =
    functions.find(({ name }) => (forced === undefined ? words.has(name) : name === forced)) ??
    (choice === 'required' ? functions[0] : undefined);
  return called && { name: called.name, arguments: JSON.stringify(jsonSample(called.parameters)) };
}

function cutAtStop(text: string, stop: ChatRequest['stop']): string {
  const stops = typeof stop === 'string' ? [stop] : (stop ?? []);
  const ends = stops.filter((end) => end !== '').map((end) => text.indexOf(end));
  return text.slice(0, Math.min(text.length, ...ends.filter((end) => end !== -1)));
}

function tokens(text: string): string[] {
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += TOKEN_LENGTH) {
    pieces.push(characters.slice(start, start + TOKEN_LENGTH).join(''));
  }
  return pieces;
}

function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('');
}

function messageTokens(message: ChatMessage): number {
  const media = Array.isArray(message.content) ? message.content.filter((part) => part.text === undefined).length : 0;
  return textTokens(messageText(message)) + media * TOKENS_PER_MEDIA_PART;
}

/**
 * The answer of a model that draws, with a picture of the last message in each choice; any other model's as it is. Its size is
 * that of an image request that names none.
 */
async function illustrated(
  said: SandboxAnswer,
  request: ChatRequest,
  painter: Painter,
  signal: AbortSignal,
): Promise<SandboxAnswer> {
  const detail = detailOf(request.model);
  const size = imageSize(undefined, undefined);
  if (detail === undefined || size === undefined) return said;
  const drawn = await painter.draw({ prompt: lastText(request), size, detail }, said.choices.length, signal);
  const tokens = drawn.length * imageTokens(size, detail);
  const { prompt_tokens, completion_tokens, total_tokens } = said.usage;
  return {
    choices: said.choices.map((choice) => ({ ...choice, images: drawn.slice(choice.index, choice.index + 1) })),
    usage: {
      prompt_tokens,
      completion_tokens: completion_tokens + tokens,
      total_tokens: total_tokens + tokens,
      completion_tokens_details: { image_tokens: tokens },
    },
  };
}

const MAX_DEPTH = 4;
const MAX_PROPERTIES = 16;

/** A small value that a simple JSON Schema accepts: its required properties, filled by type. Anything unclear is a text. */
export function jsonSample(schema: unknown, depth = 0): unknown {
  if (!isRecord(schema)) return depth === 0 ? {} : 'sandbox';
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return sampleObject(schema, depth);
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return depth === 0 ? sampleObject(schema, depth) : 'sandbox';
  }
}

function sampleObject(schema: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  if (depth >= MAX_DEPTH || !Array.isArray(schema.required)) return {};
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const names = schema.required.filter((name: unknown) => typeof name === 'string').slice(0, MAX_PROPERTIES);
  return Object.fromEntries(names.map((name) => [name, jsonSample(entryOf(properties, name), depth + 1)]));
}
