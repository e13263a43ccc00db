import type { ChatMessage } from '../generated/types.ts';
import type { MessageDialect } from './openai-dialects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Stands for thoughts that were never ours: DeepSeek takes an empty text for none at all. */
const BLANK = ' ';

/**
 * A conversation as a provider's dialect wants it; messages that need no change are the caller's own objects.
 * @param reasons whether the model does: only then it gets thoughts back
 */
export function translateMessages(
  messages: readonly ChatMessage[],
  dialect: MessageDialect,
  reasons: boolean,
): readonly object[] {
  return messages.map((message) => translateMessage(message, dialect, reasons));
}

function translateMessage(message: ChatMessage, dialect: MessageDialect, reasons: boolean): object {
  const { systemForDeveloper, leftOut } = dialect;
  const thoughts = reasons ? thoughtsOf(message, dialect) : undefined;
  const renamesRole = systemForDeveloper && message.role === 'developer';
  const calls = withoutMarks(message.tool_calls, leftOut);
  if (thoughts === undefined && !renamesRole && calls === message.tool_calls && !hasAny(message, leftOut)) {
    return message;
  }
  const translated: Record<string, unknown> = without(message, leftOut);
  if (renamesRole) translated.role = 'system';
  if (calls !== undefined) translated.tool_calls = calls;
  if (dialect.thoughts !== undefined && thoughts !== undefined) translated[dialect.thoughts] = thoughts;
  return translated;
}

/** What an assistant thought, as far as its provider wants to know it. */
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

/** Tool calls without the marks of other providers; the same list where there are none. */
function withoutMarks(
  calls: ChatMessage['tool_calls'],
  leftOut: readonly string[],
): ChatMessage['tool_calls'] | Fields[] {
  if (calls === undefined || calls === null || !calls.some((call) => hasAny(call, leftOut))) return calls;
  return calls.map((call) => without(call, leftOut));
}

const hasAny = (object: object, fields: readonly string[]): boolean =>
  fields.some((field) => Object.hasOwn(object, field));

function without(object: object, fields: readonly string[]): Record<string, unknown> {
  const rest: Record<string, unknown> = { ...object };
  for (const field of fields) delete rest[field];
  return rest;
}
