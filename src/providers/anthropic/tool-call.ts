import { createHash } from 'node:crypto';
import type { ChatMessage } from '../../generated/types.ts';
import { isRecord, parseJson } from '../wire/json.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import type { Block } from './block.ts';

/** An id that the API takes: other providers' ids may hold characters that it refuses, so those are hashed, always alike. */
export const toolUseId = (id: string): string =>
  /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`;

/** @param where names the call in the error. @throws UpstreamError `rejected` for arguments that are no JSON object */
export function toolUse(id: string, call: { readonly name: string; readonly arguments: string }, where: string): Block {
  const input = call.arguments.trim() === '' ? {} : parseJson(call.arguments);
  if (!isRecord(input)) {
    throw notTakenByProvider(
      `The provider takes tool calls with arguments that are a JSON object; ${where} has others.`,
    );
  }
  return { type: 'tool_use', id: toolUseId(id), name: call.name, input };
}

/** The calls of an earlier answer. @param where JSON pointer of the message */
export function toolUses({ tool_calls: calls }: ChatMessage, where: string): Block[] {
  return (calls ?? []).map((call, position) => {
    if (call.function === undefined) throw notTakenByProvider('The provider takes function calls only.');
    return toolUse(call.id, call.function, `${where}/tool_calls/${position}`);
  });
}
