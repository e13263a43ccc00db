import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatRequest } from '../../generated/types.ts';
import { validateChatRequest } from '../../generated/validators.js';
import { parseJson } from '../json.ts';
import { answer, lastText, type SandboxAnswer, type SandboxChoice } from './answer.ts';
import { faultOf, sendFault } from './fault.ts';
import { beginEvents, sendError, sendEvent, sendJson } from './wire.ts';

/** How slow `sandbox-slow` is. */
export interface SandboxPace {
  /** Milliseconds before the answer begins. */
  readonly firstByteMs: number;
  /** Milliseconds before each further event of a stream. */
  readonly chunkMs: number;
}

export const CHAT_MODELS: readonly string[] = ['sandbox-free', 'sandbox-paid', 'sandbox-slow', 'sandbox-faulty'];

const AT_ONCE: SandboxPace = { firstByteMs: 0, chunkMs: 0 };

/** Answers are the same whenever they are asked for, so they bear the birthday of the sandbox. */
const CREATED = Date.UTC(2026, 10, 21) / 1000;

/** `POST /v1/chat/completions`. Returns when the answer is written; stops early when `signal` says that the caller left. */
export async function completeChat(
  body: string,
  response: ServerResponse,
  slow: SandboxPace,
  signal: AbortSignal,
): Promise<void> {
  const request = parseJson(body);
  if (!validateChatRequest(request)) {
    sendError(response, 400, 'invalid_request', 'The request is no chat completion request.');
    return;
  }
  if (!CHAT_MODELS.includes(request.model)) {
    sendError(response, 404, 'model_not_found', `The sandbox has no chat model ${request.model}.`);
    return;
  }
  const stream = request.stream === true;
  if (request.model === 'sandbox-faulty') {
    sendFault(response, faultOf(lastText(request)), stream);
    return;
  }
  const pace = request.model === 'sandbox-slow' ? slow : AT_ONCE;
  await pause(pace.firstByteMs, signal);
  const head = { id: `chatcmpl-${createHash('sha256').update(body).digest('hex').slice(0, 24)}`, created: CREATED };
  if (stream) await sendStream(request, head, response, pace.chunkMs, signal);
  else sendJson(response, 200, wholeAnswer(request, head));
}

interface Head {
  readonly id: string;
  readonly created: number;
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await sleep(milliseconds, undefined, { signal });
}

function wholeAnswer(request: ChatRequest, head: Head): object {
  const { choices, usage } = answer(request);
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

function wholeMessage({ pieces, tool }: SandboxChoice): object {
  const text = pieces.join('');
  if (tool === undefined) return { role: 'assistant', content: text };
  const call = { id: tool.id, type: 'function', function: { name: tool.name, arguments: text } };
  return { role: 'assistant', content: null, tool_calls: [call] };
}

async function sendStream(
  request: ChatRequest,
  head: Head,
  response: ServerResponse,
  chunkMs: number,
  signal: AbortSignal,
): Promise<void> {
  const whole = answer(request);
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
