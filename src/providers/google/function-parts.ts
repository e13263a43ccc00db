import type { ChatMessage, MessageToolCall } from '../../generated/types.ts';
import { isRecord, parseJson } from '../wire/json.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import type { Part } from './media.ts';
import { requiresSignatures, takesMediaResults } from './model.ts';
import { toParts } from './parts.ts';
import { LOST_SIGNATURE, signatureOn } from './signatures.ts';

/** Which function each call of the conversation so far was for, by its id. */
export type CalledFunctions = Map<string, string>;

/** Arguments are an object there; text that is none, which a model may have written, goes along under a name. */
function toArgs(text: string): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {};
  const args = parseJson(text);
  return isRecord(args) ? args : { arguments: text };
}

/** A call without its id: the old form has none. */
const callPart = (id: string | undefined, name: string, args: unknown, signature: string | undefined): Part => ({
  functionCall: id === undefined ? { name, args } : { id, name, args },
  ...(signature === undefined ? {} : { thoughtSignature: signature }),
});

function toolCallPart(call: MessageToolCall, signature: string | undefined): Part {
  const { id } = call;
  if (call.type === 'custom') return callPart(id, call.custom?.name ?? '', { input: call.custom?.input }, signature);
  return callPart(id, call.function?.name ?? '', toArgs(call.function?.arguments ?? ''), signature);
}

/**
 * The calls of an assistant's turn, each with its signature. Gemini signs the first of parallel calls and refuses a turn whose
 * first call is unsigned: one whose signature got lost, or that another provider's model made, gets the documented stand-in.
 */
export function callParts(message: ChatMessage, externalId: string, called: CalledFunctions): Part[] {
  const { tool_calls: calls, function_call: old } = message;
  const parts = (calls ?? []).map((call, position) => {
    called.set(call.id, call.function?.name ?? call.custom?.name ?? '');
    const lost = position === 0 && requiresSignatures(externalId) ? LOST_SIGNATURE : undefined;
    return toolCallPart(call, signatureOn(call) ?? lost);
  });
  if (old === null || old === undefined) return parts;
  const lost = parts.length === 0 && requiresSignatures(externalId) ? LOST_SIGNATURE : undefined;
  return [...parts, callPart(undefined, old.name, toArgs(old.arguments), lost)];
}

const isText = (part: Part): boolean => typeof part.text === 'string';

/** A result is an object there: any other text, also that of a list or a number, is wrapped as it stands. */
function toResponse(parts: readonly Part[]): Readonly<Record<string, unknown>> {
  const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('');
  const value = parseJson(text);
  return isRecord(value) ? value : { result: text };
}

/**
 * The result of a call. `called` tells the function's name, which OpenAI's form leaves out.
 * @throws UpstreamError for the result of no earlier call, and for images on models that take text only
 */
export function resultPart(message: ChatMessage, externalId: string, called: CalledFunctions): Part {
  const { tool_call_id: id, name: stated } = message;
  const name = (typeof id === 'string' ? called.get(id) : undefined) ?? stated;
  if (typeof name !== 'string') throw notTakenByProvider('A tool result does not belong to any earlier tool call.');
  const parts = toParts(message.content, externalId);
  const media = parts.filter((part) => !isText(part));
  if (media.length > 0 && !takesMediaResults(externalId)) {
    throw notTakenByProvider('This model takes text as the result of a tool only.');
  }
  return {
    functionResponse: {
      ...(typeof id === 'string' ? { id } : {}),
      name,
      response: toResponse(parts),
      ...(media.length === 0 ? {} : { parts: media }),
    },
  };
}
