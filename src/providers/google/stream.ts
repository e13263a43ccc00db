import type { ChunkChoice, ChunkDelta, FinishReason } from '../../generated/types.ts';
import { streamEvents } from '../../net/event-stream.ts';
import type { StreamedResponse } from '../../net/exchange.ts';
import type { UpstreamChunk } from '../wire/adapter.ts';
import { eventJson, type Fields } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import {
  blockedText,
  type CandidatePieces,
  commonFields,
  finishReason,
  googleUsage,
  indexOf,
  type NewCallId,
  noteUse,
  readCandidate,
  type Shown,
  type Taken,
  takeApart,
  toLogprobs,
} from './answer.ts';

/** More choices than any request may ask for. */
const MAX_CHOICES = 128;

/** State of one choice in a stream so far. */
interface ChoiceState {
  calls: number;
  signatures: number;
  finished: FinishReason | undefined;
}

/** A stream under way. */
interface Progress {
  readonly newCallId: NewCallId;
  readonly states: Map<number, ChoiceState>;
  readonly shown: Shown;
  model: string | undefined;
}

/**
 * The chunks of a stream, whose events are whole answers that each hold the next piece. There is no end marker, and some models
 * state an end with every event: so the ends come last, in a chunk of their own, when the stream has ended.
 */
export async function* parseStream(
  response: StreamedResponse,
  newCallId: NewCallId,
): AsyncGenerator<UpstreamChunk, void, undefined> {
  const shown: Shown = { images: 0, queries: new Set() };
  const progress: Progress = { newCallId, states: new Map(), shown, model: undefined };
  for await (const events of streamEvents(response)) {
    for (const event of events) yield toChunk(takeApart(eventJson(event)), progress);
  }
  yield endChunk(progress);
}

function toChunk(taken: Taken, progress: Progress): UpstreamChunk {
  const { candidates, blocked, usage, fields } = taken;
  progress.model = taken.model ?? progress.model;
  const choices = candidates.map((candidate, position) => toChunkChoice(candidate, position, progress));
  if (progress.states.size > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
  if (blocked !== undefined) choices.push(...blockedChoices(blocked, progress.states));
  return { model: progress.model, choices, usage: googleUsage(usage, progress.model, progress.shown), fields };
}

function toChunkChoice(candidate: Fields, position: number, progress: Progress): ChunkChoice {
  const index = indexOf(candidate, position);
  const pieces = readCandidate(candidate, progress.newCallId);
  noteUse(pieces, candidate, progress.shown);
  const known = progress.states.get(index);
  const state: ChoiceState = known ?? { calls: 0, signatures: 0, finished: undefined };
  progress.states.set(index, state);
  const delta = toDelta(pieces, candidate, state);
  state.calls += pieces.calls.length;
  state.signatures += pieces.signatures.length;
  state.finished = finishReason(candidate.finishReason, state.calls > 0) ?? state.finished;
  return {
    index,
    delta: known === undefined ? { role: 'assistant', ...delta } : delta,
    finish_reason: null,
    ...toLogprobs(candidate.logprobsResult),
  };
}

/** A function call comes whole: one fragment with all of it. */
function toDelta(pieces: CandidatePieces, candidate: Fields, state: ChoiceState): ChunkDelta {
  return {
    ...(pieces.text === '' ? {} : { content: pieces.text }),
    ...commonFields(pieces, candidate, state.signatures),
    ...(pieces.calls.length === 0
      ? {}
      : { tool_calls: pieces.calls.map((call, position) => ({ index: state.calls + position, ...call })) }),
  };
}

/** A blocked prompt ends every choice; before the first one there is none yet, so one is made that says so. */
function blockedChoices(reason: string, states: Map<number, ChoiceState>): ChunkChoice[] {
  for (const state of states.values()) state.finished = 'content_filter';
  if (states.size > 0) return [];
  states.set(0, { calls: 0, signatures: 0, finished: 'content_filter' });
  const delta: ChunkDelta = { role: 'assistant', content: null, refusal: blockedText(reason) };
  return [{ index: 0, delta, finish_reason: null }];
}

/** The ends of all choices. @throws UpstreamError `bad_response` for a stream that was cut: one of them has no end */
function endChunk({ states, model }: Progress): UpstreamChunk {
  if (states.size === 0) throw badResponse('The provider sent an empty stream.');
  const choices: ChunkChoice[] = [];
  for (const [index, { finished }] of states) {
    if (finished === undefined) throw badResponse("The provider's stream was cut off.");
    choices.push({ index, delta: {}, finish_reason: finished });
  }
  return { model, choices, usage: undefined, fields: {} };
}
