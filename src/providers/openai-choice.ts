import type { ChatChoice, ChunkChoice, ChunkDelta, CompletionMessage, FinishReason } from '../generated/types.ts';
import { isRecord } from './json.ts';
import { badResponse } from './upstream-error.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Other words that OpenAI-compatible servers use; whatever is not known counts as a normal end. */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['refusal', 'content_filter'],
]);

/** An end that says `stop` although tools were called is `tool_calls`; being cut short or filtered wins over both. */
function finishReason(reported: string, calledTools: boolean): FinishReason {
  const reason = FINISH_REASONS.get(reported.toLowerCase()) ?? 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}

const callsTools = (message: CompletionMessage | ChunkDelta): boolean =>
  message.tool_calls !== undefined && message.tool_calls.length > 0;

const partText = (part: unknown): string => (isRecord(part) && typeof part.text === 'string' ? part.text : '');

/** Fields under our names: thoughts are `reasoning` too, a list that is null is absent, content is one text. */
function rename(message: Fields): Fields {
  const { reasoning_content: thoughts, tool_calls: calls, content } = message;
  if (calls !== null && thoughts === undefined && !Array.isArray(content)) return message;
  const { tool_calls: _, ...rest } = message;
  const renamed: Record<string, unknown> = rest;
  if (Array.isArray(content)) renamed.content = content.map(partText).join('');
  if (calls !== null && calls !== undefined) renamed.tool_calls = calls;
  if (typeof thoughts === 'string' && rest.reasoning === undefined) renamed.reasoning = thoughts;
  return renamed;
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string';

/** Checks what the gateway itself reads; what else a message holds is the upstream's and passes as it came. */
const isMessage = (message: Fields): message is Fields & CompletionMessage =>
  isTextOrNull(message.content) && isListOfRecords(message.tool_calls);

const isDelta = (delta: Fields): delta is Fields & ChunkDelta =>
  (delta.content === undefined || isTextOrNull(delta.content)) && isListOfRecords(delta.tool_calls);

const isListOfRecords = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((item) => isRecord(item)));

const indexOf = (choice: Fields, position: number): number =>
  typeof choice.index === 'number' && Number.isSafeInteger(choice.index) && choice.index >= 0 ? choice.index : position;

/** A choice of a whole answer in the normal form. @throws UpstreamError `bad_response` */
export function normaliseChoice(choice: unknown, position: number): ChatChoice {
  if (!isRecord(choice) || !isRecord(choice.message)) throw badResponse('The provider sent a malformed answer.');
  const message: Record<string, unknown> = { role: 'assistant', content: null, ...rename(choice.message) };
  message.role = 'assistant';
  if (!isMessage(message)) throw badResponse('The provider sent a malformed answer.');
  const reported = typeof choice.finish_reason === 'string' ? choice.finish_reason : 'stop';
  return {
    ...choice,
    index: indexOf(choice, position),
    finish_reason: finishReason(reported, callsTools(message)),
    message,
  };
}

/** What a stream has shown of one choice so far. */
export interface ChoiceState {
  calledTools: boolean;
  finished: boolean;
}

/** A choice of a chunk in the normal form; `states`, by index, is brought up to date. @throws UpstreamError `bad_response` */
export function normaliseChunkChoice(choice: unknown, position: number, states: Map<number, ChoiceState>): ChunkChoice {
  if (!isRecord(choice)) throw badResponse('The provider sent a malformed chunk.');
  const index = indexOf(choice, position);
  let delta: Fields = isRecord(choice.delta) ? rename(choice.delta) : {};
  let state = states.get(index);
  if (state === undefined) {
    state = { calledTools: false, finished: false };
    states.set(index, state);
    delta = { ...delta, role: 'assistant' };
  }
  if (!isDelta(delta)) throw badResponse('The provider sent a malformed chunk.');
  if (callsTools(delta)) state.calledTools = true;
  const { finish_reason: reported } = choice;
  if (typeof reported !== 'string' || reported === '') return { ...choice, index, delta, finish_reason: null };
  state.finished = true;
  return { ...choice, index, delta, finish_reason: finishReason(reported, state.calledTools) };
}
