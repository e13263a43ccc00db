import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatRequest } from '../../generated/types.ts';
import { validateChatRequest } from '../../generated/validators.js';
import { parseJson } from '../wire/json.ts';
import { answer, lastText, type SandboxAnswer, type SandboxChoice } from './answer.ts';
import { CREATED } from './birthday.ts';
import { type Fault, faultIn, faultOf, sendFault } from './fault.ts';
import { illustrated } from './illustrate.ts';
import { completesChats, detailOf } from './models.ts';
import type { Painter } from './painter.ts';
import { beginEvents, sendError, sendEvent, sendJson } from './wire.ts';

/** How slow `sandbox-slow` is. */
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
