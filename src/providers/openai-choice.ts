import type { FinishReason, UpstreamChoice, UpstreamChunkChoice } from './adapter.ts';
import { isRecord } from './json.ts';
import { badResponse } from './upstream-error.ts';

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

const callsTools = (message: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(message.tool_calls) && message.tool_calls.length > 0;

/** Servers that think aloud name the field differently; ours is `reasoning`. */
function withReasoning(message: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { reasoning_content: reasoning } = message;
  return typeof reasoning === 'string' && message.reasoning === undefined ? { ...message, reasoning } : message;
}

const indexOf = (choice: Readonly<Record<string, unknown>>, position: number): number =>
  typeof choice.index === 'number' && Number.isSafeInteger(choice.index) && choice.index >= 0 ? choice.index : position;

/** A choice of a whole answer in the normal form. @throws UpstreamError `bad_response` */
export function normaliseChoice(choice: unknown, position: number): UpstreamChoice {
  if (!isRecord(choice) || !isRecord(choice.message)) throw badResponse('The provider sent a malformed answer.');
  const { message } = choice;
  const reported = typeof choice.finish_reason === 'string' ? choice.finish_reason : 'stop';
  return {
    ...choice,
    index: indexOf(choice, position),
    finish_reason: finishReason(reported, callsTools(message)),
    message: withReasoning(message.role === undefined ? { role: 'assistant', ...message } : message),
  };
}

/** What a stream has shown of one choice so far. */
export interface ChoiceState {
  calledTools: boolean;
  finished: boolean;
}

/** A choice of a chunk in the normal form; `states`, by index, is brought up to date. @throws UpstreamError `bad_response` */
export function normaliseChunkChoice(
  choice: unknown,
  position: number,
  states: Map<number, ChoiceState>,
): UpstreamChunkChoice {
  if (!isRecord(choice)) throw badResponse('The provider sent a malformed chunk.');
  const index = indexOf(choice, position);
  let delta: Readonly<Record<string, unknown>> = withReasoning(isRecord(choice.delta) ? choice.delta : {});
  let state = states.get(index);
  if (state === undefined) {
    state = { calledTools: false, finished: false };
    states.set(index, state);
    if (delta.role === undefined) delta = { role: 'assistant', ...delta };
  }
  if (callsTools(delta)) state.calledTools = true;
  const { finish_reason: reported } = choice;
  if (typeof reported !== 'string' || reported === '') return { ...choice, index, delta, finish_reason: null };
  state.finished = true;
  return { ...choice, index, delta, finish_reason: finishReason(reported, state.calledTools) };
}
