import type { ChatChoice, ChunkChoice, ChunkDelta, CompletionMessage, FinishReason } from '../../generated/types.ts';
import { isRecord } from '../wire/json.ts';
import { badResponse, UpstreamError } from '../wire/upstream-error.ts';
import { disguisedError } from './error.ts';
import { BegunCalls, boundCalls, normaliseFragment, normaliseToolCall, toolCalls } from './tool-calls.ts';

/** Parsed JSON that nobody else holds: messages are brought into form in place. */
type Fields = Record<string, unknown>;

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

/** Ends that are failures: Mistral's and OpenRouter's, and DeepSeek's when it runs out of machines. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource']);

/** Lists that some servers send as null where they have none. */
const LISTS = ['tool_calls', 'reasoning_details', 'images', 'annotations'] as const;

/**
 * An end that says `stop` although tools were called is `tool_calls`; being cut short or filtered wins over both.
 * @throws UpstreamError `upstream_error` for an end that is a failure
 */
function finishReason(reported: string, calledTools: boolean): FinishReason {
  const word = reported.toLowerCase();
  if (FAILURES.has(word))
    throw new UpstreamError('upstream_error', 'The provider broke off its answer.', { status: 200 });
  const reason = FINISH_REASONS.get(word) ?? 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}

const callsTools = ({ tool_calls: calls }: CompletionMessage): boolean => calls !== undefined && calls.length > 0;

const partText = (part: unknown): string => (isRecord(part) && typeof part.text === 'string' ? part.text : '');

/** Mistral's thoughts: `{type: "thinking", thinking: [{type: "text", text}]}`. */
function partThoughts(part: unknown): string {
  if (!isRecord(part) || part.type !== 'thinking') return '';
  const { thinking } = part;
  if (Array.isArray(thinking)) return thinking.map(partText).join('');
  return typeof thinking === 'string' ? thinking : '';
}

/** Fields under our names, in place: thoughts are `reasoning`, a list that is null is absent, content is one text. */
function rename(message: Fields): void {
  const { content, reasoning_content: thoughts } = message;
  if (typeof thoughts === 'string') message.reasoning ??= thoughts;
  if (Array.isArray(content)) {
    message.content = content.map(partText).join('');
    const thinking = content.map(partThoughts).join('');
    if (thinking !== '') message.reasoning ??= thinking;
  }
  for (const list of LISTS) if (message[list] === null) delete message[list];
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

/** A choice of a whole answer in the normal form. @throws UpstreamError */
export function normaliseChoice(choice: unknown, position: number, secret: string | undefined): ChatChoice {
  if (!isRecord(choice) || !isRecord(choice.message)) throw badResponse('The provider sent a malformed answer.');
  if (isRecord(choice.error)) throw disguisedError(choice, secret);
  const { message } = choice;
  rename(message);
  message.role = 'assistant';
  message.content ??= null;
  toolCalls(message).forEach(normaliseToolCall);
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
  readonly index: number;
  readonly calls: BegunCalls;
  finished: boolean;
}

/** A choice of a chunk in the normal form; `states` is brought up to date. @throws UpstreamError */
export function normaliseChunkChoice(
  choice: unknown,
  position: number,
  states: ChoiceState[],
  secret: string | undefined,
): ChunkChoice {
  if (!isRecord(choice)) throw badResponse('The provider sent a malformed chunk.');
  if (isRecord(choice.error)) throw disguisedError(choice, secret);
  const index = indexOf(choice, position);
  const delta = isRecord(choice.delta) ? choice.delta : {};
  rename(delta);
  let state = states.find((each) => each.index === index);
  if (state === undefined) {
    state = { index, calls: new BegunCalls(), finished: false };
    states.push(state);
    delta.role = 'assistant';
  }
  const calls = toolCalls(delta);
  for (const call of calls) normaliseFragment(call, state.calls);
  if (calls.length > 0) boundCalls(states.reduce((sum, each) => sum + each.calls.length, 0));
  if (!isDelta(delta)) throw badResponse('The provider sent a malformed chunk.');
  if (choice.usage !== undefined) delete choice.usage; // Moonshot's, read before
  const { finish_reason: reported } = choice;
  if (typeof reported !== 'string' || reported === '') return { ...choice, index, delta, finish_reason: null };
  state.finished = true;
  return { ...choice, index, delta, finish_reason: finishReason(reported, state.calls.length > 0) };
}
